//! Tables of game objects: which properties an object has, in which order, and of which types.
//!
//! A *goobj* (game object type) has a number of 16 bits. It leads to a [`Class`], the layout that many
//! goobjs share: an order of properties for creates, and other orders for updates. [`Objects`] holds
//! all of it, compiled for lookup. [`Tables`] collects it from what is built in and from files.
//!
//! What is read later takes the place of what was there. Read classes before what names them.
//!
//! ```
//! use worldwire_mxo::schema::Tables;
//! let mut tables = Tables::built_in();
//! let problems = tables.read("mine.txt", "worldwire-mxo-objects 1\ngoobj 420 door364 Door\n");
//! assert!(problems.is_empty());
//! let objects = tables.compile();
//! let (_, class) = objects.class_of(420).unwrap();
//! assert_eq!(class.create().slot(13).unwrap().name(), "CurrentState");
//! ```

mod built_in;
mod class;
mod guess;
mod objects;
mod problems;
mod table;
mod tables;

pub use class::{Class, MOST_PROPERTIES, Order, Slot, Updates};
pub use guess::MOST_SHAPES;
pub use objects::{ClassId, Objects};
pub use problems::MOST_PROBLEMS;
pub use tables::{Goobj, MOST_CLASSES, Tables};
