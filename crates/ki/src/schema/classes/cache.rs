//! Compiled classes as bytes, so that the JSON does not have to be read again at the next start.
//!
//! | part | layout |
//! | --- | --- |
//! | head | `WWclass\0`, `u32` version, 32 bytes [`ContentHash`], 32 bytes SHA-256 of what follows |
//! | texts | `u32` count, each `u32` length and UTF-8 |
//! | choices | `u32` count, each: default and base class (text + 1, 0 for none), `u8` signed, `u32` count, each text and `u32` number, `u32` count, each two texts |
//! | classes | `u32` count, each: name, hash, `u8` singleton, bases (`u32` count, texts), properties |
//! | notes | `u32` count, each list, class and text |
//!
//! Texts are `u32` indices into the first table. The format is private to this program and changes
//! with its version. A cache that does not match exactly is refused, and the lists are read again.

use std::collections::HashMap;
use std::sync::Arc;

use sha2::{Digest, Sha256};
use worldwire_core::{Error, Reader, Result, Writer};

use super::{Choices, Class, ClassNote, Classes, Container, Property, PropertyKind};

const MAGIC: &[u8; 8] = b"WWclass\0";
const VERSION: u32 = 4;
/// A limit on the bytes of all option names: lists repeat them for every property.
const MAX_NAME_BYTES: u64 = 64 << 20;

/// The hash of type lists' contents. A cache that was built from different lists is not used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ContentHash(pub [u8; 32]);

impl ContentHash {
    /// Hashes lists, in the order in which they are added.
    pub fn of<'b>(lists: impl IntoIterator<Item = &'b [u8]>) -> Self {
        let mut hash = Sha256::new();
        for list in lists {
            hash.update((list.len() as u64).to_le_bytes());
            hash.update(list);
        }
        Self(hash.finalize().into())
    }
}

impl Classes {
    /// The classes as bytes, for a file that avoids having to compile the lists again.
    #[must_use]
    pub fn to_cache(&self, content: ContentHash) -> Vec<u8> {
        let mut texts = Texts::default();
        let mut tables: Vec<&Arc<Choices>> = Vec::new();
        let mut known: HashMap<*const Choices, u32> = HashMap::new();
        let mut body = Writer::new();
        body.u32(count(self.classes.len()));
        for class in &self.classes {
            body.u32(texts.of(&class.name));
            body.u32(class.hash);
            body.u8(u8::from(class.singleton));
            body.u32(count(class.bases.len()));
            for base in &class.bases {
                body.u32(texts.of(base));
            }
            body.u32(count(class.properties.len()));
            for property in &class.properties {
                let table = property.choices.as_ref().map_or(0, |table| {
                    *known.entry(Arc::as_ptr(table)).or_insert_with(|| {
                        tables.push(table);
                        count(tables.len())
                    })
                });
                let marks = [property.dynamic, property.singleton, property.pointer];
                let marks = marks.iter().rev().fold(0, |bits, mark| bits << 1 | u8::from(*mark));
                body.u8(marks);
                for number in [
                    texts.of(&property.name),
                    texts.of(&property.type_name),
                    texts.of(property.container.name()),
                    property.id,
                    property.offset,
                    property.flags,
                    property.hash,
                    table,
                ] {
                    body.u32(number);
                }
            }
        }
        body.u32(count(self.notes.len()));
        for note in &self.notes {
            for text in [&*note.list, &*note.class, &note.text] {
                body.u32(texts.of(text));
            }
        }
        let mut choices = Writer::new();
        choices.u32(count(tables.len()));
        for table in tables {
            for special in [&table.default, &table.base_class] {
                choices.u32(special.as_ref().map_or(0, |text| texts.of(text) + 1));
            }
            choices.u8(u8::from(table.is_signed));
            choices.u32(count(table.names().iter().count()));
            for (_, name) in table.names().iter() {
                choices.u32(texts.of(name));
                choices.u32(table.number(name).unwrap_or(0));
            }
            choices.u32(count(table.texts().len()));
            for (name, text) in table.texts() {
                choices.u32(texts.of(name));
                choices.u32(texts.of(text));
            }
        }
        let mut rest = Writer::new();
        rest.u32(count(texts.list.len()));
        for text in texts.list {
            rest.u32(count(text.len()));
            rest.bytes(text.as_bytes());
        }
        rest.bytes(choices.as_bytes());
        rest.bytes(body.as_bytes());
        sealed(content, rest.as_bytes())
    }

    /// Reads the output of [`Self::to_cache`], provided that it was compiled from lists with these
    /// contents.
    ///
    /// # Errors
    /// `Malformed` if the cache is damaged, has a different version or was built from other lists,
    /// or is not a cache; a limit error for too many names. In each case, read the lists again.
    pub fn from_cache(bytes: &[u8], content: ContentHash) -> Result<Self> {
        let mut reader = Reader::new(bytes);
        read(&mut reader, content).map_err(|error| error.closed().about("class cache"))
    }
}

/// The number of bytes before the texts.
#[cfg(feature = "fuzzing")]
pub(crate) const HEAD_BYTES: usize = MAGIC.len() + 4 + 32 + 32;

/// Builds a cache from its contents by adding the head.
pub(crate) fn sealed(content: ContentHash, rest: &[u8]) -> Vec<u8> {
    let mut out = Writer::new();
    out.bytes(MAGIC);
    out.u32(VERSION);
    out.bytes(&content.0);
    out.bytes(&Sha256::digest(rest));
    out.bytes(rest);
    out.into_bytes()
}

fn read(reader: &mut Reader<'_>, content: ContentHash) -> Result<Classes> {
    if reader.take_array()? != *MAGIC {
        return Err(Error::malformed("a class cache", "other data"));
    }
    let version = reader.u32("version")?;
    if version != VERSION {
        return Err(Error::malformed(format!("version {VERSION}"), version.to_string()));
    }
    if reader.take_array()? != content.0 {
        return Err(Error::malformed("a cache of these type lists", "a cache of other type lists"));
    }
    let checksum: [u8; 32] = reader.take_array()?;
    if checksum != *Sha256::digest(reader.rest()) {
        return Err(Error::malformed("an intact cache", "a damaged one"));
    }
    let texts: Vec<Arc<str>> = list(reader, "texts", 4, |reader| {
        let length = reader.u32("length")? as usize;
        let text = core::str::from_utf8(reader.take(length)?);
        text.map(Arc::from).map_err(|error| Error::malformed("UTF-8", error.to_string()))
    })?;
    let text = |reader: &mut Reader<'_>| pick(&texts, reader.u32("text")?);
    let mut name_bytes = 0;
    let mut name = |index| -> Result<Box<str>> {
        let text = pick(&texts, index)?;
        name_bytes += text.len() as u64;
        if name_bytes > MAX_NAME_BYTES {
            return Err(Error::limit("bytes of names", MAX_NAME_BYTES, name_bytes));
        }
        Ok(Box::from(&*text))
    };
    let tables = list(reader, "choices", 17, |reader| {
        let mut optional = |reader: &mut Reader<'_>| {
            let index = reader.u32("text")?.checked_sub(1);
            index.map(&mut name).transpose()
        };
        let (default, base_class) = (optional(reader)?, optional(reader)?);
        let is_signed = reader.u8("signed")? != 0;
        let options = list(reader, "options", 8, |reader| {
            Ok((name(reader.u32("text")?)?, reader.u32("number")?))
        })?;
        let texts = list(reader, "texts", 8, |reader| {
            Ok((name(reader.u32("text")?)?, Err(name(reader.u32("text")?)?)))
        })?;
        let options = options.into_iter().map(|(name, number)| (name, Ok(number)));
        let mut choices = Choices::resolved(options.chain(texts));
        if is_signed {
            choices = choices.signed();
        }
        choices.default = default;
        choices.base_class = base_class;
        Ok(Arc::new(choices))
    })?;
    let classes = list(reader, "classes", 17, |reader| {
        let (name, hash) = (text(reader)?, reader.u32("hash")?);
        let singleton = reader.u8("singleton")? != 0;
        let bases = list(reader, "bases", 4, text)?;
        let properties = list(reader, "properties", 33, |reader| {
            let marks = reader.u8("marks")?;
            let (name, type_name, container) = (text(reader)?, text(reader)?, text(reader)?);
            let [id, offset, flags, hash] = [
                reader.u32("id")?,
                reader.u32("offset")?,
                reader.u32("flags")?,
                reader.u32("hash")?,
            ];
            let choices = match reader.u32("choices")?.checked_sub(1) {
                Some(index) => Some(pick(&tables, index)?),
                None => None,
            };
            Ok(Property {
                index: 0,
                kind: PropertyKind::of(&type_name, flags),
                class: None,
                base: None,
                name,
                type_name,
                id,
                offset,
                flags,
                container: Container::parse(container),
                dynamic: marks & 1 != 0,
                singleton: marks & 2 != 0,
                pointer: marks & 4 != 0,
                hash,
                choices,
            })
        })?;
        let mut class = Class::new(name, hash, properties);
        (class.bases, class.singleton) = (bases, singleton);
        Ok(class)
    })?;
    let notes = list(reader, "notes", 12, |reader| {
        let (list, class) = (text(reader)?, text(reader)?);
        Ok(ClassNote { list, class, text: text(reader)?.to_string() })
    })?;
    reader.end()?;
    Ok(Classes::assemble(classes, notes))
}

/// Reads a counted list whose elements take at least this many bytes each.
fn list<E>(
    reader: &mut Reader<'_>,
    name: &'static str,
    least: usize,
    mut element: impl FnMut(&mut Reader<'_>) -> Result<E>,
) -> Result<Vec<E>> {
    let count = reader.u32(name)?;
    // In memory, an element can take several times its bytes, so capacity grows with the data read.
    let mut list = Vec::with_capacity(reader.capacity(u64::from(count), u64::MAX, least)?.min(64));
    for index in 0..count as usize {
        list.push(element(reader).map_err(|error| error.inside_item(index).inside(name))?);
    }
    Ok(list)
}

fn pick<E: Clone>(list: &[E], index: u32) -> Result<E> {
    let found = list.get(index as usize).cloned();
    found.ok_or_else(|| {
        Error::malformed(format!("an index below {}", list.len()), index.to_string())
    })
}

#[derive(Default)]
struct Texts<'t> {
    list: Vec<&'t str>,
    known: HashMap<&'t str, u32>,
}

impl<'t> Texts<'t> {
    fn of(&mut self, text: &'t str) -> u32 {
        *self.known.entry(text).or_insert_with(|| {
            self.list.push(text);
            count(self.list.len()) - 1
        })
    }
}

/// A count; it cannot overflow, because lists come from files of at most 256 MiB.
fn count(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cache_restores_everything_and_only_for_its_own_lists() {
        let json = br#"{"class A": {"bases": ["B"], "hash": 7, "properties": {
            "m_b": {"type": "enum E", "id": 1, "flags": 31, "container": "Heap", "dynamic": true,
                "hash": 2, "enum_options": {"B": 1, "A": 1, "C": "5", "T": "text", "__DEFAULT": "C"}},
            "m_i": {"type": "int", "id": 2, "hash": 3, "enum_options": {"N": -1, "O": 1}},
            "m_a": {"type": "class A*", "id": 0, "offset": 9, "pointer": true, "hash": 1}}}}"#;
        let classes = Classes::of_json(json);
        let content = ContentHash::of([&json[..]]);
        let cache = classes.to_cache(content);
        let again = Classes::from_cache(&cache, content).unwrap();
        assert_eq!(again.all(), classes.all());
        assert_eq!(again.notes(), classes.notes());
        assert_eq!(again.to_cache(content), cache);
        let other = ContentHash::of([&json[..], &json[..]]);
        assert!(Classes::from_cache(&cache, other).is_err());
        for end in 0..cache.len() {
            assert!(Classes::from_cache(&cache[..end], content).is_err(), "{end}");
            let mut damaged = cache.clone();
            damaged[end] ^= 1;
            assert!(Classes::from_cache(&damaged, content).is_err(), "{end}");
        }
    }

    #[test]
    fn a_cache_cannot_take_more_memory_than_a_list() {
        let mut rest = Writer::new();
        rest.u32(1);
        rest.u32(1 << 20);
        rest.bytes(&vec![b'n'; 1 << 20]);
        rest.u32(1);
        rest.bytes(&[0; 9]);
        rest.u32(100);
        rest.bytes(&[0; 8 * 100]);
        rest.bytes(&[0; 8]);
        let content = ContentHash([0; 32]);
        let cache = sealed(content, rest.as_bytes());
        let error = Classes::from_cache(&cache, content).unwrap_err().to_string();
        assert!(error.contains("wanted at most 67108864 (bytes of names)"), "{error}");
    }
}
