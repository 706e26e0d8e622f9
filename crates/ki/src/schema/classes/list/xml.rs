//! Reading type lists as XML, which the client itself can write.
//!
//! | element | attributes |
//! | --- | --- |
//! | `ClassList` | |
//! | `Class` | `Name`, `Base` |
//! | `Property` | `Name`, `Type`, `PropertyId`, `Offset`, `Flags`, `Container`, `Pointer`, `Default` |
//! | `Enum` | `Name` |
//! | `Option` | `Name`, `Value`: a number, or the name of another option; the names `__DEFAULT` and `__BASECLASS` have the meaning that they have in JSON |
//!
//! Lists in XML have no hashes, so these are computed. Text that is not UTF-8 is read as Latin-1,
//! whatever encoding the file declares.
//!
//! Unverified: whether a class repeats its base's properties. Properties that it does not repeat
//! are inherited, before its own. A list from a real client would settle it.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use worldwire_core::{Error, Form, Result};

use super::read::{MAX_PROPERTIES, intern};
use super::{FoundClass, Texts, blank, finish, fitting};
use crate::schema::classes::{Choices, Class, Container, Property, bare, parse_number};
use crate::string_id;
use crate::xml::{ScanError, Scanner, Tag, Token, unescaped};

/// Deeper nesting is refused.
const MAX_DEPTH: usize = 32;
/// Attributes of an element beyond this number are ignored. Known elements have at most eight.
const MAX_ATTRIBUTES: usize = 64;
/// Base chains are followed up to this length.
const MAX_BASES: usize = 64;
/// The maximum number of inherited properties in all classes together.
const MAX_INHERITED: usize = 1 << 20;

/// A class as it appears in the list.
struct Draft {
    name: Arc<str>,
    base: String,
    properties: Vec<DraftProperty>,
}

struct DraftProperty {
    property: Property,
    /// The ID, if the list contains one.
    id: Option<u32>,
    /// The names of the options, each with its number or text.
    options: Vec<Choice>,
    default: Option<Box<str>>,
    base_class: Option<Box<str>>,
}

/// The name of an option, with its number or text.
type Choice = (Box<str>, Result<u32, Box<str>>);

/// Whether a list is XML, judging by its first character.
pub(super) fn is_xml(bytes: &[u8]) -> bool {
    bytes.trim_ascii_start().first() == Some(&b'<')
}

/// Reads the classes of a list.
///
/// # Errors
/// `Malformed`, with the offset, if the text is not XML or not a class list; a limit error if a
/// limit is exceeded.
pub(super) fn read(bytes: &[u8], texts: &mut Texts) -> Result<Vec<FoundClass>> {
    let text = match core::str::from_utf8(bytes) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => match Form::Latin1.read(bytes) {
            worldwire_core::Content::Text(text) => text,
            worldwire_core::Content::Bytes(_) => Cow::default(),
        },
    };
    let mut drafts = drafts(&text, texts)?;
    for draft in drafts.iter_mut().flat_map(|class| &mut class.properties) {
        let options = core::mem::take(&mut draft.options);
        let (default, base_class) = (draft.default.take(), draft.base_class.take());
        if !options.is_empty() || default.is_some() || base_class.is_some() {
            let mut choices = Choices::resolved(options);
            (choices.default, choices.base_class) = (default, base_class);
            draft.property.choices = Some(fitting(Arc::new(choices), draft.property.kind));
        }
    }
    let classes = classes(&drafts, MAX_INHERITED, texts)?.into_iter();
    // The list contains no hashes, so all are computed.
    Ok(classes.map(|class| FoundClass { class, is_verified: true }).collect())
}

fn drafts(text: &str, texts: &mut Texts) -> Result<Vec<Draft>> {
    let mut scanner = Scanner::new(text);
    let mut classes: Vec<Draft> = Vec::new();
    loop {
        let tag = match scanner.read() {
            Ok(Token::Open(tag)) => tag,
            Ok(Token::End) => return Ok(classes),
            Ok(_) => continue,
            Err(ScanError::Invalid { at, message }) => {
                let problem = format!("not a type list: {message}");
                return Err(Error::malformed("", problem).at(at as u64));
            }
            Err(ScanError::Unclosed(span)) => {
                let problem = format!("{:.80} is not closed", text.get(span).unwrap_or_default());
                return Err(Error::malformed("", problem).at(text.len() as u64));
            }
        };
        // The tag begins with `<`, one byte before its name.
        let at = tag.span.start as u64 - 1;
        if tag.depth == 0 && tag.name != "ClassList" {
            return Err(Error::malformed("a ClassList", format!("<{:.80}>", tag.name)).at(at));
        }
        if tag.depth >= MAX_DEPTH {
            let (limit, found) = (MAX_DEPTH as u64, tag.depth as u64 + 1);
            return Err(Error::limit("depth of elements", limit, found).at(at));
        }
        let parent = tag.depth.checked_sub(1).and_then(|depth| scanner.open_name(depth));
        let outcome = element(parent.unwrap_or_default(), &tag, &mut classes, texts);
        outcome.map_err(|error| error.at(at))?;
    }
}

/// Handles the start of an element inside `parent`.
fn element(parent: &str, tag: &Tag<'_>, classes: &mut Vec<Draft>, texts: &mut Texts) -> Result<()> {
    let attribute = |name: &str| {
        let mut attributes = tag.attributes().take(MAX_ATTRIBUTES);
        attributes.find(|(key, _)| *key == name).map(|(_, value)| value.into_owned())
    };
    match (parent, tag.name) {
        ("ClassList", "Class") => {
            let name = attribute("Name").filter(|name| !name.is_empty());
            let name = name.ok_or_else(|| Error::malformed("", "this class has no Name"))?;
            let (name, base) = (intern(texts, &name), attribute("Base").unwrap_or_default());
            classes.push(Draft { name, base, properties: Vec::new() });
        }
        ("Class", "Property") => {
            let Some(class) = classes.last_mut() else { return Ok(()) };
            if class.properties.len() == MAX_PROPERTIES {
                let (max, asked) = (MAX_PROPERTIES as u64, MAX_PROPERTIES as u64 + 1);
                return Err(Error::limit("properties of a class", max, asked).inside(&class.name));
            }
            let property = property(tag, texts).ok_or_else(|| {
                Error::malformed("", "this property has no Name or no Type").inside(&class.name)
            })?;
            class.properties.push(property);
        }
        ("Enum", "Option") => {
            let value = attribute("Value").unwrap_or_default();
            let Some(property) = classes.last_mut().and_then(|it| it.properties.last_mut()) else {
                return Ok(());
            };
            let name = attribute("Name").unwrap_or_default();
            match &*name {
                "__DEFAULT" => property.default = Some(value.into()),
                "__BASECLASS" => property.base_class = Some(value.into()),
                _ => {
                    let value = parse_number(value.trim()).ok_or_else(|| value.into());
                    property.options.push((name.into(), value));
                }
            }
        }
        _ => {}
    }
    Ok(())
}

/// Reads a property; returns `None` if it has no name or no type.
fn property(tag: &Tag<'_>, texts: &mut Texts) -> Option<DraftProperty> {
    let (mut property, mut id, mut default) = (blank(Arc::default(), 0), None, None);
    let number = |value: &str| parse_number(value.trim());
    for (key, value) in tag.attributes().take(MAX_ATTRIBUTES) {
        match key {
            "Name" => property.name = intern(texts, &value),
            // Types are escaped twice, because templates contain angle brackets.
            "Type" => property.type_name = intern(texts, &unescaped(&value)),
            "PropertyId" => id = number(&value),
            "Offset" => property.offset = number(&value).unwrap_or(0),
            "Flags" => property.flags = number(&value).unwrap_or(0),
            "Default" if !value.is_empty() => default = Some(value.into()),
            "Container" if !value.is_empty() => {
                property.container = Container::parse(intern(texts, &value));
            }
            "Pointer" => {
                property.pointer = value.trim() == "1" || value.eq_ignore_ascii_case("true")
            }
            _ => {}
        }
    }
    finish(&mut property, None, None);
    let is_whole = !property.name.is_empty() && !property.type_name.is_empty();
    let (options, base_class) = (Vec::new(), None);
    is_whole.then_some(DraftProperty { property, id, options, default, base_class })
}

/// Builds the classes, with inherited properties.
fn classes(drafts: &[Draft], max: usize, texts: &mut Texts) -> Result<Vec<Class>> {
    let by_name: HashMap<&str, &Draft> = drafts.iter().map(|draft| (&*draft.name, draft)).collect();
    let mut inherited = 0;
    let mut classes = Vec::with_capacity(drafts.len());
    for draft in drafts {
        let mut chain: Vec<&Draft> = Vec::new();
        let mut bases = Vec::new();
        let mut base = draft.base.trim();
        while !base.is_empty() && bases.len() < MAX_BASES {
            bases.push(intern(texts, bare(base)));
            let Some(next) = by_name.get(base) else { break };
            chain.push(next);
            base = next.base.trim();
        }
        let mut known: HashSet<&str> =
            draft.properties.iter().map(|it| &*it.property.name).collect();
        // If several bases have a property, the nearest one defines it. The properties of the
        // furthest base come first.
        let mut levels: Vec<Vec<&DraftProperty>> = Vec::new();
        for base in chain {
            let new = base.properties.iter().filter(|it| known.insert(&it.property.name));
            levels.push(new.collect());
        }
        let mut all: Vec<&DraftProperty> = levels.into_iter().rev().flatten().collect();
        let is_whole = all.is_empty();
        inherited += all.len();
        if inherited > max {
            let (max, asked) = (max as u64, inherited as u64);
            return Err(Error::limit("inherited properties", max, asked).inside(&draft.name));
        }
        let mut own: Vec<&DraftProperty> = draft.properties.iter().collect();
        own.sort_by_key(|property| property.id.map(u32::cast_signed));
        all.extend(own);
        let properties = all.into_iter().zip(0..).map(|(draft, position)| {
            // If nothing is repeated, IDs count from 0 in each class.
            let id = draft.id.filter(|_| is_whole).unwrap_or(position);
            Property { id, ..draft.property.clone() }
        });
        let (name, hash) = (Arc::clone(&draft.name), string_id(draft.name.as_bytes()));
        let mut class = Class::new(name, hash, properties.collect());
        class.bases = bases;
        classes.push(class);
    }
    Ok(classes)
}

#[cfg(test)]
mod tests {
    use super::super::super::{PropertyKind, TypeLists};

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
    fn a_client_list_is_read() {
        let classes = compile(LIST.as_bytes()).unwrap();
        assert!(classes.notes().is_empty(), "{:?}", classes.notes());
        let leaf = classes.find("Leaf").unwrap();
        assert_eq!(leaf.hash, crate::string_id(b"class Leaf"));
        assert_eq!(
            leaf.bases.iter().map(|it| &**it).collect::<Vec<_>>(),
            ["Base", "PropertyClass"]
        );
        let [id, list, kind] = leaf.properties() else { panic!("three properties") };
        assert_eq!((&*id.name, id.id, id.kind()), ("m_id", 0, PropertyKind::U32));
        assert_eq!((&*list.name, list.id, list.flags), ("m_list", 1, u32::MAX));
        assert_eq!(&*list.type_name, "class SharedPointer<class Base>");
        assert!(list.is_list() && list.pointer);
        assert_eq!(list.hash, crate::property_hash(b"class SharedPointer<class Base>", b"m_list"));
        let choices = kind.choices.as_ref().unwrap();
        assert_eq!(choices.number("K_First"), Some(1));
        assert_eq!(&*choices.texts()[0].1, "café");
        // The converted list equals the one that dumpers write.
        let json = classes.to_list(super::super::super::ListVersion::Two);
        assert_eq!(compile(json.as_bytes()).unwrap().diff(&classes).changed.len(), 0);
    }

    #[test]
    fn repeated_properties_are_not_inherited() {
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
    fn latin_1_is_read_and_other_files_are_refused() {
        let latin: Vec<u8> = LIST.replace("Leaf", "Caf#").bytes().collect();
        let latin: Vec<u8> =
            latin.into_iter().map(|it| if it == b'#' { 0xe9 } else { it }).collect();
        assert!(compile(&latin).unwrap().find("Café").is_some());
        let error = |xml: &str| compile(xml.as_bytes()).unwrap_err().to_string();
        assert_eq!(error("<Objects/>"), "list.xml: at byte 0: wanted a ClassList, found <Objects>");
        assert_eq!(error("<ClassList/>"), "list.xml: the type list has no classes");
        assert_eq!(
            error("<ClassList><Class Base=\"x\"/></ClassList>"),
            "list.xml: at byte 11: this class has no Name"
        );
        assert!(error("<ClassList><Class Name=\"x\">").contains("Class is not closed"));
        assert!(error(&"<ClassList>".repeat(40)).contains("depth of elements"));
    }

    #[test]
    fn cyclic_and_repeated_inheritance_is_bounded() {
        let circle =
            "<ClassList><Class Name=\"A\" Base=\"B\"/><Class Name=\"B\" Base=\"A\"/></ClassList>";
        let classes = compile(circle.as_bytes()).unwrap();
        assert_eq!(classes.find("A").unwrap().bases.len(), super::MAX_BASES);
        let draft = |name: &str, base: &str, properties| super::Draft {
            name: name.into(),
            base: base.to_owned(),
            properties,
        };
        let property = |index: usize| super::DraftProperty {
            property: super::blank(format!("p{index}").into(), index),
            id: None,
            options: Vec::new(),
            default: None,
            base_class: None,
        };
        let mut drafts = vec![draft("C", "", (0..20).map(property).collect())];
        drafts.extend((0..6).map(|heir| draft(&format!("C{heir}"), "C", Vec::new())));
        let texts = &mut super::Texts::default();
        let error = super::classes(&drafts, 100, texts).unwrap_err().to_string();
        assert_eq!(error, "C5: wanted at most 100 (inherited properties), found 120");
        assert_eq!(super::classes(&drafts, 120, texts).unwrap()[6].properties().len(), 20);
    }
}
