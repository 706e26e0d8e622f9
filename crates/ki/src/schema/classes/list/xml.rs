//! Type lists as XML: what a client writes of itself.
//!
//! | element | attributes that are read |
//! | --- | --- |
//! | `ClassList` | |
//! | `Class` | `Name`, `Base` |
//! | `Property` | `Name`, `Type`, `PropertyId`, `Offset`, `Flags`, `Container`, `Pointer` |
//! | `Enum` | `Name` |
//! | `Option` | `Name`, `Value`: a number, or the name of another option |
//!
//! There are no hashes: they are computed. Text is Latin-1 where it is not UTF-8, whatever it declares.
//!
//! Unverified: whether a class repeats the properties of its base. What it does not repeat it
//! inherits, in front of its own. A list of a real client would settle it.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};
use worldwire_core::{Error, Form, Result};

use super::read::{MAX_PROPERTIES, intern};
use crate::schema::classes::{Choices, Class, Container, Kind, Property, bare, parse_number};
use crate::{property_hash, string_id};

/// How deep elements may stand in each other.
const MAX_DEPTH: usize = 32;
/// The most attributes of an element that are looked at; known ones have eight.
const MAX_ATTRIBUTES: usize = 64;
/// The most bases of a class: of its base, of the base of that, and so on.
const MAX_BASES: usize = 64;
/// The most properties that all classes of a list inherit together.
const MAX_INHERITED: usize = 1 << 20;

/// A class as it stands in the list.
#[derive(Default)]
struct Draft {
    name: String,
    base: String,
    properties: Vec<DraftProperty>,
}

#[derive(Default)]
struct DraftProperty {
    name: String,
    type_name: String,
    id: Option<u32>,
    offset: u32,
    flags: u32,
    container: String,
    is_pointer: bool,
    options: Option<Vec<DraftOption>>,
}

/// The name of an option, and its number or another text.
type DraftOption = (Box<str>, Result<u32, Box<str>>);

/// Whether a list is XML: its first character says so.
pub(super) fn is_xml(bytes: &[u8]) -> bool {
    bytes.trim_ascii_start().first() == Some(&b'<')
}

/// The classes of a list.
///
/// # Errors
/// Malformed, for what is no XML or no list of classes, with its place; the limits.
pub(super) fn read(bytes: &[u8], texts: &mut HashSet<Arc<str>>) -> Result<Vec<Class>> {
    let text = match core::str::from_utf8(bytes) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => match Form::Latin1.read(bytes) {
            worldwire_core::Content::Text(text) => text,
            worldwire_core::Content::Bytes(_) => Cow::default(),
        },
    };
    let drafts = drafts(&text)?;
    classes(&drafts, MAX_INHERITED, texts)
}

fn drafts(text: &str) -> Result<Vec<Draft>> {
    let mut reader = Reader::from_str(text);
    reader.config_mut().allow_dangling_amp = true;
    let mut classes: Vec<Draft> = Vec::new();
    let mut open: Vec<String> = Vec::new();
    loop {
        let at = reader.buffer_position();
        let (tag, is_empty) = match reader.read_event() {
            Ok(Event::Start(tag)) => (tag, false),
            Ok(Event::Empty(tag)) => (tag, true),
            Ok(Event::End(_)) => {
                open.pop();
                continue;
            }
            Ok(Event::Eof) => break,
            Ok(_) => continue,
            Err(error) => {
                let error = Error::malformed("a type list", format!("invalid XML: {error}"));
                return Err(error.at(reader.error_position()));
            }
        };
        let name = tag.name().into_inner().to_owned();
        if open.is_empty() && name != "ClassList" {
            return Err(Error::malformed("a ClassList", format!("<{name:.80}>")).at(at));
        }
        if open.len() >= MAX_DEPTH {
            let (most, asked) = (MAX_DEPTH as u64, open.len() as u64 + 1);
            return Err(Error::limit("depth of elements", most, asked).at(at));
        }
        let above = open.last().map_or("", String::as_str);
        element(above, &name, &tag, &mut classes).map_err(|error| error.at(at))?;
        if !is_empty {
            open.push(name);
        }
    }
    match open.pop() {
        Some(name) => {
            let error = Error::malformed(format!("the end of {name:.80}"), "the end of the text");
            Err(error.at(text.len() as u64))
        }
        None => Ok(classes),
    }
}

/// Takes an element into account, by the one it is in.
fn element(above: &str, name: &str, tag: &BytesStart<'_>, classes: &mut Vec<Draft>) -> Result<()> {
    match (above, name) {
        ("ClassList", "Class") => {
            let mut class = Draft::default();
            attributes(tag, |key, value| match key {
                "Name" => class.name = value.into_owned(),
                "Base" => class.base = value.into_owned(),
                _ => {}
            });
            if class.name.is_empty() {
                return Err(Error::malformed("a class with a Name", "one without"));
            }
            classes.push(class);
        }
        ("Class", "Property") => {
            let Some(class) = classes.last_mut() else { return Ok(()) };
            if class.properties.len() == MAX_PROPERTIES {
                let (most, asked) = (MAX_PROPERTIES as u64, MAX_PROPERTIES as u64 + 1);
                return Err(Error::limit("properties of a class", most, asked).inside(&class.name));
            }
            let property = property(tag);
            if property.name.is_empty() || property.type_name.is_empty() {
                let error = Error::malformed("a property with Name and Type", "one without");
                return Err(error.inside(&class.name));
            }
            class.properties.push(property);
        }
        ("Property", "Enum") => {
            if let Some(property) = classes.last_mut().and_then(|it| it.properties.last_mut()) {
                property.options.get_or_insert_default();
            }
        }
        ("Enum", "Option") => {
            let property = classes.last_mut().and_then(|it| it.properties.last_mut());
            if let Some(options) = property.and_then(|it| it.options.as_mut()) {
                let (mut name, mut value) = (Box::default(), Err(Box::default()));
                attributes(tag, |key, found| match key {
                    "Name" => name = found.as_ref().into(),
                    "Value" => {
                        value = parse_number(found.trim()).ok_or_else(|| found.as_ref().into());
                    }
                    _ => {}
                });
                options.push((name, value));
            }
        }
        _ => {}
    }
    Ok(())
}

fn property(tag: &BytesStart<'_>) -> DraftProperty {
    let mut property = DraftProperty::default();
    let number = |value: &str| parse_number(value.trim());
    attributes(tag, |key, value| match key {
        "Name" => property.name = value.into_owned(),
        // Types are escaped twice: templates have brackets.
        "Type" => property.type_name = unescaped(&value).into_owned(),
        "PropertyId" => property.id = number(&value),
        "Offset" => property.offset = number(&value).unwrap_or(0),
        "Flags" => property.flags = number(&value).unwrap_or(0),
        "Container" => property.container = value.into_owned(),
        "Pointer" => property.is_pointer = matches!(value.trim(), "1" | "true" | "True" | "TRUE"),
        _ => {}
    });
    property
}

fn attributes(tag: &BytesStart<'_>, mut take: impl FnMut(&str, Cow<'_, str>)) {
    let mut attributes = tag.attributes();
    // Looking for repeated ones takes a time that grows with the square of their number.
    let unchecked = attributes.with_checks(false).flatten();
    for attribute in unchecked.take(MAX_ATTRIBUTES) {
        take(attribute.key.into_inner(), unescaped(&attribute.value));
    }
}

fn unescaped(text: &str) -> Cow<'_, str> {
    quick_xml::escape::unescape(text).unwrap_or(Cow::Borrowed(text))
}

/// The classes, each with what it inherits.
fn classes(drafts: &[Draft], most: usize, texts: &mut HashSet<Arc<str>>) -> Result<Vec<Class>> {
    let by_name: HashMap<&str, &Draft> =
        drafts.iter().map(|draft| (draft.name.as_str(), draft)).collect();
    let mut inherited = 0;
    let mut classes = Vec::with_capacity(drafts.len());
    for draft in drafts {
        let mut chain: Vec<&Draft> = Vec::new();
        let mut bases = Vec::new();
        let mut base = draft.base.trim();
        while !base.is_empty() && bases.len() < MAX_BASES {
            bases.push(intern(texts, bare(base).to_owned()));
            let Some(next) = by_name.get(base) else { break };
            chain.push(next);
            base = next.base.trim();
        }
        let own: HashSet<&str> = draft.properties.iter().map(|it| it.name.as_str()).collect();
        let mut known = own.clone();
        let mut all: Vec<&DraftProperty> = Vec::new();
        // The nearest base has the say about a property; the furthest has its own in front.
        let mut levels: Vec<Vec<&DraftProperty>> = Vec::new();
        for base in chain {
            let new = base.properties.iter().filter(|it| known.insert(&it.name));
            levels.push(new.collect());
        }
        levels.reverse();
        all.extend(levels.into_iter().flatten());
        let is_whole = all.is_empty();
        inherited += all.len();
        if inherited > most {
            let (most, asked) = (most as u64, inherited as u64);
            return Err(Error::limit("inherited properties", most, asked).inside(&draft.name));
        }
        let mut own: Vec<&DraftProperty> = draft.properties.iter().collect();
        own.sort_by_key(|property| property.id.map(u32::cast_signed));
        all.extend(own);
        let properties = all.into_iter().zip(0..).map(|(property, place)| {
            // Ids count from 0 in each class where nothing is repeated.
            let id = property.id.filter(|_| is_whole).unwrap_or(place);
            finished(property, id, texts)
        });
        let properties = properties.collect();
        let name = intern(texts, draft.name.clone());
        let mut class = Class::new(name, string_id(draft.name.as_bytes()), properties);
        class.bases = bases;
        classes.push(class);
    }
    Ok(classes)
}

fn finished(draft: &DraftProperty, id: u32, texts: &mut HashSet<Arc<str>>) -> Property {
    let container = match draft.container.as_str() {
        "" => Container::Static,
        name => Container::parse(intern(texts, name.to_owned())),
    };
    let choices = draft.options.as_ref().filter(|options| !options.is_empty());
    Property {
        index: 0,
        kind: Kind::of(&draft.type_name, draft.flags),
        class: None,
        hash: property_hash(draft.type_name.as_bytes(), draft.name.as_bytes()),
        name: intern(texts, draft.name.clone()),
        type_name: intern(texts, draft.type_name.clone()),
        id,
        offset: draft.offset,
        flags: draft.flags,
        dynamic: container != Container::Static,
        container,
        singleton: false,
        pointer: draft.is_pointer,
        choices: choices.map(|options| Arc::new(Choices::resolved(options.iter().cloned()))),
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::{Kind, TypeLists};

    fn compile(xml: &[u8]) -> worldwire_core::Result<crate::schema::classes::Classes> {
        let mut lists = TypeLists::new();
        lists.add("list.xml", xml)?;
        Ok(lists.compile())
    }

    const LIST: &str = r#"<?xml version="1.0" encoding="UTF-8"?>
<ClassList>
  <Class Name="class PropertyClass" Base="" PropertyCount="0" FunctionCount="0" Size="8" Offset="0"/>
  <Class Name="class Base" Base="class PropertyClass" PropertyCount="1">
    <Property Name="m_id" PropertyId="0" Type="unsigned int" Offset="8" Flags="31" Container="Static"/>
  </Class>
  <Class Name="class Leaf" Base="class Base" PropertyCount="2" FunctionCount="1">
    <Property Name="m_kind" PropertyId="1" Type="enum Kind" Offset="16" Flags="2097159" Container="Static">
      <Enum Name="enum Kind" OptionCount="3">
        <Option Name="K_One" Value="1"/><Option Name="K_First" Value="K_One"/>
        <Option Name="K_Text" Value="caf&#233;"/>
      </Enum>
    </Property>
    <Property Name="m_list" PropertyId="0" Type="class SharedPointer&amp;lt;class Base&amp;gt;" Offset="24" Flags="-1" Container="List" Pointer="true"/>
    <Function Name="Do" ReturnType="void" ArgumentCount="0"/>
  </Class>
</ClassList>"#;

    #[test]
    fn a_list_of_a_client_is_read() {
        let classes = compile(LIST.as_bytes()).unwrap();
        assert!(classes.notes().is_empty(), "{:?}", classes.notes());
        let leaf = classes.find("Leaf").unwrap();
        assert_eq!(leaf.hash, crate::string_id(b"class Leaf"));
        assert_eq!(
            leaf.bases.iter().map(|it| &**it).collect::<Vec<_>>(),
            ["Base", "PropertyClass"]
        );
        let [id, list, kind] = leaf.properties() else { panic!("three properties") };
        assert_eq!((&*id.name, id.id, id.kind()), ("m_id", 0, Kind::U32));
        assert_eq!((&*list.name, list.id, list.flags), ("m_list", 1, u32::MAX));
        assert_eq!(&*list.type_name, "class SharedPointer<class Base>");
        assert!(list.is_list() && list.pointer);
        assert_eq!(list.hash, crate::property_hash(b"class SharedPointer<class Base>", b"m_list"));
        let choices = kind.choices.as_ref().unwrap();
        assert_eq!(choices.number("K_First"), Some(1));
        assert_eq!(&*choices.texts()[0].1, "café");
        // Converted, it is the list that dumpers write.
        let json = classes.to_list(super::super::super::ListVersion::Two);
        assert_eq!(compile(json.as_bytes()).unwrap().diff(&classes).changed.len(), 0);
    }

    #[test]
    fn what_a_class_repeats_it_does_not_inherit() {
        let list = LIST.replace(
            "<Function ",
            "<Property Name=\"m_id\" PropertyId=\"7\" Type=\"int\" Flags=\"7\"/><Function ",
        );
        let classes = compile(list.as_bytes()).unwrap();
        let leaf = classes.find("Leaf").unwrap();
        let names: Vec<_> = leaf.properties().iter().map(|it| (&*it.name, it.id)).collect();
        assert_eq!(names, [("m_list", 0), ("m_kind", 1), ("m_id", 7)]);
    }

    #[test]
    fn latin_text_is_read_and_what_is_no_list_is_named() {
        let latin: Vec<u8> = LIST.replace("Leaf", "Caf#").bytes().collect();
        let latin: Vec<u8> =
            latin.into_iter().map(|it| if it == b'#' { 0xe9 } else { it }).collect();
        assert!(compile(&latin).unwrap().find("Café").is_some());
        let error = |xml: &str| compile(xml.as_bytes()).unwrap_err().to_string();
        assert_eq!(error("<Objects/>"), "list.xml: at byte 0: wanted a ClassList, found <Objects>");
        assert_eq!(
            error("<ClassList/>"),
            "list.xml: wanted a type list with at least one class, found none"
        );
        assert_eq!(
            error("<ClassList><Class Base=\"x\"/></ClassList>"),
            "list.xml: at byte 11: wanted a class with a Name, found one without"
        );
        assert!(error("<ClassList><Class Name=\"x\">").contains("wanted the end of Class"));
        assert!(error(&"<ClassList>".repeat(40)).contains("depth of elements"));
    }

    #[test]
    fn circles_and_heirs_are_bounded() {
        let circle =
            "<ClassList><Class Name=\"A\" Base=\"B\"/><Class Name=\"B\" Base=\"A\"/></ClassList>";
        let classes = compile(circle.as_bytes()).unwrap();
        assert_eq!(classes.find("A").unwrap().bases.len(), super::MAX_BASES);
        let draft = |name: &str, base: &str, properties| super::Draft {
            name: name.to_owned(),
            base: base.to_owned(),
            properties,
        };
        let property = |index: u32| super::DraftProperty {
            name: format!("p{index}"),
            type_name: "int".to_owned(),
            ..super::DraftProperty::default()
        };
        let mut drafts = vec![draft("C", "", (0..20).map(property).collect())];
        drafts.extend((0..6).map(|heir| draft(&format!("C{heir}"), "C", Vec::new())));
        let texts = &mut std::collections::HashSet::new();
        let error = super::classes(&drafts, 100, texts).unwrap_err().to_string();
        assert_eq!(error, "C5: wanted at most 100 (inherited properties), found 120");
        assert_eq!(super::classes(&drafts, 120, texts).unwrap()[6].properties().len(), 20);
    }
}
