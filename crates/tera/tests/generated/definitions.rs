//! The definitions that `messages.rs` is made from.

use worldwire_tera::schema::{Definition, Dialect, FileName, ParseOptions, Set};

/// Every kind of field, in every dialect, and names that want out.
const DEFINITIONS: [(&str, Dialect, &str); 10] = [
    (
        "S_EVERYTHING.1.def",
        Dialect::Toolbox,
        "bool a\nbyte b\nint16 c\nuint16 d\nint32 e\nuint32 f\nint64 g\nuint64 h\nfloat i\n\
         double j\nangle k\nvec3 l\nvec3fa m\nskillid n\nskillid32 o\ncustomize p\nstring q\n\
         bytes r\narray s\n- int32 t\n- string u\n- array v\n- - byte w\nobject x\n- int16 y\n\
         - string z\n- object deep\n- - array list\n- - - bytes blob\n",
    ),
    (
        "S_HOSTILE.2.def",
        Dialect::Toolbox,
        "int32 type\nint32 self\nint32 Self\nint32 input\nint32 start\nint32 gameId\n\
         int32 game_id\nint32 _\nint32 __\nint32 f0\nint32 fixed0\nint32 Value\nstring Ok\n\
         array value\n- int32 output\n- array Text\n- - int32 item\narray Value2\n- int32 error\n\
         object match\n- string Vec\n- array Result\n- - string crate\n",
    ),
    (
        "S_TYPED.1.def",
        Dialect::Toolbox,
        "array<int32> numbers\narray<string> words\narray<vec3> places\narray<bool> flags\n\
         array<skillid> skills\narray<angle> angles\narray<vec3fa> turns\narray<customize> looks\n",
    ),
    (
        "C_MIXED.7.def",
        Dialect::Toolbox,
        "object o\n- int16 p\nuint64 id\narray[interleaved] a\n- int32 x\n- string y\narray<vec3>[interleaved] b\n\
         array[interleaved] c\n- array[interleaved] d\n- - byte e\n- array[interleaved] f\n\
         - - int16 g\n- bytes h\n- byte w\nint32 behind\nstring s\nint32 last\nobject o\n- string q\n",
    ),
    (
        "S_REF.1.def",
        Dialect::Toolbox,
        "int32 id\nref list\nref name\nuint16 more\narray list\n- ref word\n- float f\n\
         - string word\n- int16 behind\nstring name\nobject o\n- ref blob\n- bytes blob\n",
    ),
    (
        "S_COUNTED.1.def",
        Dialect::Legacy,
        "count list\noffset name\nint32 id\noffset list\noffset nobody\noffset blob\ncount blob\n\
         array list\n- offset word\n- int32 id\n- string word\nstring name\nint32 behind\n\
         bytes blob\nbool last\n",
    ),
    (
        "S_PIECES.3.def",
        Dialect::Legacy,
        "object o\n- int32 a\n- string s\nint16 between\nobject o\n- int16 b\n- bytes t\n\
         int32 twice\nbyte other\nint32 twice\nbyte third\nint32 twice\nbyte odd\nfloat odd\narray l\n- object p\n\
         - - int32 x\n- byte y\n- object p\n- - string z\nint32 end\n",
    ),
    (
        "S_PLACED.1.def",
        Dialect::Proto,
        "int32 id\nstring name\narray<array<int16>> grid\nint32[3] three\nbytes blob\n\
         string[2] pair\nobject[2] rows\n- int16 a\n- string[2] b\n- array l\n- - byte c\n\
         float[2][3] matrix\nbyte[40] many\nstring[33] lines\nskillid[2] skills\n\
         array<int32[2]> steps\narray<object[2]> both\n- string s\n- int32 n ^86\n\
         array<array<array<string>>> deep\narray<bytes> blobs\nobject[1] one\n- int16 x\n\
         - object[2] two\n- - string t\n",
    ),
    ("S_EMPTY.0.def", Dialect::Toolbox, "object nothing\narray void\n"),
    // Read leniently: the string stands where it is.
    ("S_INLINE.1.def", Dialect::Legacy, "offset nmae\nint32 id\nstring name\nbyte level\n"),
];

pub(crate) fn definitions() -> Vec<Definition> {
    let parse = |(name, dialect, text): (&str, Dialect, &str)| {
        let lenient = name.starts_with("S_INLINE");
        let options = ParseOptions { dialect: Some(dialect), lenient, ..ParseOptions::default() };
        let file = FileName::parse(name).unwrap();
        Definition::parse(&file, text, &options).unwrap_or_else(|problems| panic!("{problems:?}"))
    };
    // No line can say how its elements stand.
    let program = Set::load([("C_CHANGE_EQUIP_PRESET.1.js", "")], ParseOptions::default());
    DEFINITIONS.into_iter().map(parse).chain(program.definitions().cloned()).collect()
}
