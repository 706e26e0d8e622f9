//! Synthetic definitions with the number, size and shape of a real set, and messages encoded with
//! them.

use worldwire_core::Sampler;
use worldwire_tera::message::{Head, Value};
use worldwire_tera::schema::{Definition, Dialect, ParseOptions, Set};

/// Number of definition files.
pub(crate) const FILES: usize = 836;

/// Number of fields of each type, excluding the named definitions; typed arrays and arrays with
/// fields count as one each.
const FIELDS: [(&str, u32); 20] = [
    ("int32", 1444),
    ("uint32", 1062),
    ("uint64", 396),
    ("bool", 375),
    ("float", 256),
    ("string", 250),
    ("int64", 224),
    ("array", 202),
    ("vec3", 124),
    ("byte", 100),
    ("int16", 97),
    ("uint16", 55),
    ("angle", 52),
    ("skillid", 38),
    ("bytes", 31),
    ("array<int32>", 24),
    ("vec3fa", 17),
    ("array<uint32>", 13),
    ("customize", 10),
    ("double", 10),
];

/// A representative message: its definition, a list to fill and its number of elements, and three
/// fields that are looked up.
pub(crate) struct Named {
    pub(crate) title: &'static str,
    pub(crate) name: &'static str,
    text: &'static str,
    filled: Option<(&'static str, usize)>,
    pub(crate) asked: [&'static str; 3],
}

/// Messages of all relevant sizes: a player appears, an inventory, a party, a skill, chat, and
/// movement. All have version 1.
pub(crate) const NAMED: [Named; 6] = [
    Named {
        title: "user",
        name: "S_SYNTHETIC_USER",
        text: "uint32 world\nuint32 person\nuint64 id\nvec3 place\nangle facing\nint32 relation\n\
               int32 kind\nint16 zone\nint16 walking\nint16 running\nint16 mode\nint16 state\n\
               bool shown\nbool living\ncustomize looks\nuint32 sword\nuint32 coat\n\
               uint32 gloves\nuint32 shoes\nuint32 shirt\nuint32 hat\nuint32 mask\nint32 effect\n\
               int32 horse\nint32 pose\nint32 rank\nint64 ferry\nint32 sign\nbool fair\n\
               bool master\nbool hidden\nuint32 dye0\nuint32 dye1\nuint32 dye2\nuint32 dye3\n\
               uint32 dye4\nuint32 dye5\nuint32 dye6\nuint32 charm\nbool target\nbool duels\n\
               int32 level\nuint64 carriage\nbool face\nuint32 style0\nuint32 style1\n\
               uint32 style2\nuint32 style3\nfloat size0\nvec3fa turn0\nvec3 shift0\nfloat size1\n\
               vec3fa turn1\nvec3 shift1\nfloat size2\nvec3fa turn2\nvec3 shift2\nint32 party\n\
               bool crowd\nint64 titles\nfloat scale\narray<int32> icons\nstring name\n\
               string guild\nstring guildRank\nbytes details\nstring crest\nbytes shape\n",
        filled: Some(("icons", 4)),
        asked: ["id", "name", "level"],
    },
    Named {
        title: "bag",
        name: "S_SYNTHETIC_BAG",
        text: "uint64 id\nint32 pages\nint64 money\nbool open\nbool first\nbool more\n\
               int32 mean\nint32 best\narray items\n- array crystals\n- - int32 kind\n- - int32 place\n- array passives\n\
               - - int32 kind\n- int32 kind\n- uint64 item\n- uint64 owner\n- int32 slot\n\
               - int32 amount\n- int32 charm\n- bool bound\n- int32 luck\n- int32 dye\n\
               - int64 until\n- bool used\n- int32 level\n- uint64 experience\n- bool awake\n\
               - string maker\n",
        filled: Some(("items", 60)),
        asked: ["id", "money", "best"],
    },
    Named {
        title: "party",
        name: "S_SYNTHETIC_PARTY",
        text: "bool raid\nuint32 leaderWorld\nuint32 leader\nint32 sharing\nint32 rarity\n\
               array members\n- uint32 world\n- uint32 person\n- int32 level\n- int32 class\n\
               - bool online\n- uint64 id\n- int32 order\n- bool invites\n- uint32 crest\n\
               - string name\n",
        filled: Some(("members", 10)),
        asked: ["raid", "leader", "members"],
    },
    Named {
        title: "skill",
        name: "S_SYNTHETIC_SKILL",
        text: "uint64 id\nvec3 place\nangle facing\nint32 kind\nskillid skill\nint32 stage\n\
               float speed\nfloat reach\nuint32 serial\nbool moving\nvec3 goal\nuint64 target\n\
               array moves\n- float duration\n- float speed\n- float distance\n",
        filled: Some(("moves", 2)),
        asked: ["id", "skill", "target"],
    },
    Named {
        title: "chat",
        name: "S_SYNTHETIC_CHAT",
        text: "int32 channel\nuint64 id\nuint32 world\nbool master\nbool bearer\nstring name\n\
               string text\n",
        filled: None,
        asked: ["channel", "name", "text"],
    },
    Named {
        title: "steps",
        name: "C_SYNTHETIC_STEPS",
        text: "vec3 place\nangle facing\nangle looking\nvec3 goal\nint32 kind\nint16 slide\n\
               uint32 time\nbool shadow\n",
        filled: None,
        asked: ["place", "goal", "time"],
    },
];

/// The titles of the named definitions that also have a generated struct: one with texts and bytes,
/// one with nested arrays, and one whose fields all have a fixed size.
pub(crate) const TYPED: [&str; 3] = ["user", "bag", "steps"];

/// The names and texts of all files; always the same.
pub(crate) fn files() -> Vec<(String, String)> {
    let mut files: Vec<(String, String)> =
        NAMED.iter().map(|one| (format!("{}.1.def", one.name), one.text.to_owned())).collect();
    let mut sampler = Sampler::new(836);
    let mut below =
        |bound: usize| -> usize { usize::try_from(sampler.below(bound as u64)).unwrap_or(0) };
    let rest = FILES - files.len();
    let mut fields: Vec<Vec<&str>> = vec![Vec::new(); rest];
    for (kind, count) in FIELDS {
        for _ in 0..count {
            // A few definitions are long; most are short.
            let file = below(rest).min(below(rest));
            fields[file].push(kind);
        }
    }
    for (number, fields) in fields.iter_mut().enumerate() {
        let side = if number % 3 == 0 { 'C' } else { 'S' };
        let mut text = format!("# synthetic message {number}\n\n");
        let (mut fixed, mut varied) = (String::new(), String::new());
        for index in 0..fields.len() {
            let kind = fields.swap_remove(below(fields.len()));
            let line = format!("{kind:<6} field{index}\n");
            match kind {
                "array" => {
                    varied.push_str(&line);
                    for inner in 0..1 + below(6) {
                        let kind = ["int32", "uint64", "bool", "float", "string"][below(5)];
                        varied.push_str(&format!("- {kind:<6} inner{inner}\n"));
                    }
                }
                "string" | "bytes" | "array<int32>" | "array<uint32>" => varied.push_str(&line),
                _ => fixed.push_str(&line),
            }
        }
        text.push_str(&fixed);
        text.push_str(&varied);
        files.push((format!("{side}_SYNTHETIC_{number}.{}.def", 1 + number % 4), text));
    }
    files
}

/// All definitions.
pub(crate) fn set() -> Set {
    Set::load(files(), ParseOptions { dialect: Some(Dialect::Toolbox), ..ParseOptions::default() })
}

/// Generates messages of a definition.
pub(crate) fn messages(definition: &Definition, count: usize) -> Vec<Vec<u8>> {
    let (plan, mut sampler) = (definition.plan(), Sampler::new(7));
    let named = NAMED.iter().find(|one| one.name == definition.name());
    let message = |_| {
        let mut value = plan.sample(&mut sampler);
        if let Some((path, wanted)) = named.and_then(|one| one.filled) {
            let slot = plan.fields().iter().position(|field| field.name() == path);
            let slot = slot.unwrap_or_else(|| panic!("no list {path}"));
            let list = |value: Value<'static>| match value {
                Value::Record(mut fields) => fields.swap_remove(slot),
                _ => Value::Absent,
            };
            let mut items = Vec::new();
            while items.len() < wanted {
                let more = list(plan.sample(&mut sampler));
                items.extend(more.list().into_iter().flatten().cloned());
            }
            items.truncate(wanted);
            if let Value::Record(fields) = &mut value {
                fields[slot] = Value::List(items);
            }
        }
        let mut bytes = Vec::new();
        plan.encode(Head::plain(0x1234), &value, &mut bytes)
            .expect("generated values can be encoded");
        bytes
    };
    (0..count).map(message).collect()
}
