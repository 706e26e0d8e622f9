//! The definitions from which `messages.rs` is generated.

use worldwire_tera::schema::{Definition, Dialect, FileName, ParseOptions, Set};

/// Every type of field in every dialect, and field names that are Rust keywords, names the generated
/// code uses itself, or not Rust names at all.
const DEFINITIONS: [(&str, Dialect, &str); 5] = [
    (
        "S_EVERYTHING.1.def",
        Dialect::Toolbox,
        "bool type\nbyte self\nint16 Self\nuint16 input\nint32 start\nuint32 gameId\n\
         int64 game_id\nuint64 _\nfloat __\ndouble f0\nangle fixed0\nvec3 Value\nvec3fa error\n\
         skillid index\nskillid32 o\ncustomize at0\nint32 output\nstring Ok\nbytes r\n\
         array value\n- int32 output\n- string u\n- array Text\n- - byte item\n\
         array Value2\n- int32 error\n\
         object match\n- int16 y\n- string Vec\n- object deep\n- - array Result\n- - - bytes crate\n\
         array<bool> flags\narray<skillid> skills\narray<angle> angles\narray<vec3fa> turns\n\
         array<customize> looks\narray<string> words\n\
         object nothing\narray void\n",
    ),
    (
        "C_MIXED.7.def",
        Dialect::Toolbox,
        "object o\n- int16 p\nuint64 id\narray[interleaved] a\n- int32 x\n- string y\n\
         array<vec3>[interleaved] b\narray[interleaved] c\n- array[interleaved] d\n- - byte e\n\
         - array[interleaved] f\n- - int16 g\n- bytes h\n- byte w\nint32 after\nstring s\n\
         int32 last\nobject o\n- string q\n",
    ),
    // Read leniently: because of the misspelt offset, the string `inline` is read in place.
    (
        "S_COUNTED.1.def",
        Dialect::Legacy,
        "count list\noffset name\nint32 id\noffset list\noffset nobody\noffset blob\ncount blob\n\
         offset inlien\narray list\n- offset word\n- int32 id\n- string word\nstring name\n\
         int32 after\nbytes blob\nstring inline\nbool last\n",
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
];

pub(crate) fn definitions() -> Vec<Definition> {
    let parse = |(name, dialect, text): (&str, Dialect, &str)| {
        let lenient = name.starts_with("S_COUNTED");
        let options = ParseOptions { dialect: Some(dialect), lenient, ..ParseOptions::default() };
        let file = FileName::parse(name).unwrap();
        Definition::parse(&file, text, &options).unwrap_or_else(|problems| panic!("{problems:?}"))
    };
    // No line of a definition can describe its elements.
    let program = Set::load([("C_CHANGE_EQUIP_PRESET.1.js", "")], ParseOptions::default());
    DEFINITIONS.into_iter().map(parse).chain(program.definitions().cloned()).collect()
}
