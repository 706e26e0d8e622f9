from worldwire.ki import TypeList

types = TypeList("types.json")
with open("TemplateManifest.xml", "rb") as file:
    manifest = types.decode(file.read())
assert manifest["$class"] == "class TemplateManifest"

rows = manifest.rows("m_serializedTemplates", ["m_id", "m_filename"])
print("\n".join(f"Template {id} at {name}" for id, name in rows))
