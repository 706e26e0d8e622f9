from katsuba.op import *
from katsuba.wad import Archive

type_list = TypeList.open("types.json")

opts = SerializerOptions()
opts.flags |= STATEFUL_FLAGS
opts.shallow = False

s = Serializer(opts, type_list)

a = Archive.mmap("Root.wad")

print(f"{len(a)} files in archive!")

if "TemplateManifest.xml" in a:
    a.deserialize("TemplateManifest.xml", s)

for path in a:
    data = a[path]

for path in a.iter_glob("ObjectData/**/*.xml"):
    data = a[path]
