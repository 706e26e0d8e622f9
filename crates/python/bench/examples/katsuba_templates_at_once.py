from katsuba.op import *
from katsuba.utils import string_id

type_list = TypeList.open("types.json")

opts = SerializerOptions()
opts.flags |= STATEFUL_FLAGS
opts.shallow = False

ser = Serializer(opts, type_list)

with open("TemplateManifest.xml", "rb") as f:
    manifest = f.read()
    assert manifest[:4] == b"BINd"

manifest = ser.deserialize(manifest[4:])

assert manifest.type_hash == string_id("class TemplateManifest")

locations = manifest["m_serializedTemplates"]
print("\n".join(f"Template {it['m_id']} at {it['m_filename']}" for it in locations))
