//! Tables of game objects: the properties of each object, their order and their types.
//!
//! A *goobj* (game object type) has a 16-bit number. It determines a [`Class`], a layout that many
//! goobjs share: one order of properties for creates, and others for updates. [`Objects`] contains
//! all goobjs and classes, compiled for lookup. [`Tables`] collects them from the built-in tables
//! and from files:
//!
//! | file | contents | read by |
//! | --- | --- | --- |
//! | worldwire's table format | everything, as text | [`Tables::read`] |
//! | `class_id,create_index,name,size,update_index` | classes | [`Tables::read_class_csv`] |
//! | `name,id,` | names of goobjs | [`Tables::read_name_csv`] |
//! | `goid,class_id` | the class of each goobj | [`Tables::read_map`] |
//! | `AttributeClass364 Object415` | the same, as C# source | [`Tables::read_declarations`] |
//! | `#VALUES FOR GOID: ...` | the community's dump: classes and goobjs | [`Tables::read_dump`] |
//! | JSON | classes and goobjs | [`Tables::read_json`] |
//!
//! Later entries replace earlier ones. Read classes before the files that refer to them.
//!
//! The built-in tables contain a player's character (goobj 12), an NPC (599), doors and a few other
//! objects; `worldwire mxo objects convert --built-in` prints all of them.
//!
//! ```
//! use worldwire_mxo::schema::Tables;
//! let mut tables = Tables::built_in();
//! let problems = tables.read_map("mine.txt", "420,door364\n");
//! assert!(problems.is_empty());
//! let objects = tables.compile();
//! let (_, class) = objects.class_of(420).unwrap();
//! assert_eq!(class.create().slot(13).unwrap().name(), "CurrentState");
//! ```

mod built_in;
mod class;
mod csv;
mod dump;
mod guess;
mod json;
mod known;
mod objects;
mod problems;
mod table;
mod tables;

pub use class::{Class, ClassId, MAX_PROPERTIES, Order, Slot, Updates};
pub use csv::{csv_fields, declared_class, is_csv_header};
pub use guess::MAX_SHAPES;
pub use objects::Objects;
pub use problems::MAX_PROBLEMS;
pub use tables::{Goobj, MAX_CLASSES, Tables};
