from worldwire.ki import Archive, TypeList

types = TypeList("types.json")
archive = Archive("Root.wad")
print(f"{len(archive)} files in archive!")

if "TemplateManifest.xml" in archive:
    types.decode(archive["TemplateManifest.xml"])

for path, data in archive.files():
    pass

for path, data in archive.files("ObjectData/**/*.xml"):
    pass
