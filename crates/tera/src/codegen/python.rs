//! Generates Python dataclasses, for editors and type checkers.

use core::fmt::Write as _;

use worldwire_core::codegen::Taken;
use worldwire_core::codegen::python::{Names, Value, module, quoted};

use super::names::code;
use super::shape::{Shape, Shapes, Struct};
use crate::schema::Plan;
use crate::types::Scalar;

/// Generates a Python module for definitions, given as names, versions and plans.
///
/// Every definition becomes a dataclass, with one more for each object and each array with fields. The
/// module needs the package `worldwire`. The same definitions always yield the same text.
///
/// ```
/// use worldwire_tera::codegen::python;
/// use worldwire_tera::schema::{ParseOptions, Set};
///
/// let set = Set::load([("S_GREETING.1.def", "int32 id\nstring name\n")], ParseOptions::default());
/// let source = python(set.definitions().map(|one| (one.name(), one.version(), one.plan())));
/// assert!(source.contains("class SGreetingV1(Message):"));
/// assert!(source.contains("    name: str = \"\"\n"));
/// ```
#[must_use]
pub fn python<'p>(definitions: impl IntoIterator<Item = (&'p str, u32, &'p Plan)>) -> String {
    let mut out = String::new();
    let mut taken = Taken::default();
    for (name, version, plan) in definitions {
        let shapes = Shapes::of(name, version, plan, &mut taken);
        // A class must precede those that use it.
        for (index, one) in shapes.structs.iter().enumerate().rev() {
            let about = match index {
                0 => format!("{}, version {version}.", code(name)),
                _ => format!("{} of {}.", code(&one.path), code(name)),
            };
            let base = if index == 0 { "Message" } else { "Fields" };
            let _ = write!(out, "\n\n@dataclass\nclass {}({base}):\n", one.name);
            let _ = writeln!(out, "    \"\"\"{about}\"\"\"\n");
            if index == 0 {
                let name = quoted(&format!("tera.{name}"));
                let _ = writeln!(out, "    NAME: ClassVar[str] = {name}");
                let _ = writeln!(out, "    VERSION: ClassVar[Optional[int]] = {version}");
            }
            fields(one, &shapes, index == 0, &mut out);
        }
    }
    module(&out)
}

fn fields(one: &Struct, shapes: &Shapes<'_>, is_message: bool, out: &mut String) {
    if one.fields.is_empty() && !is_message {
        out.push_str("    pass\n");
    }
    let mut names = Names::default();
    for field in &one.fields {
        let wire = shapes.plan.field(field.index).name();
        let kind = python_type(&field.shape, shapes);
        let class = match element(&field.shape) {
            Element::Plain => None,
            Element::Vec3 => Some("Vec3"),
            Element::Record(index) => Some(shapes.structs[index].name.as_str()),
        };
        let is_list = matches!(field.shape, Shape::List(..) | Shape::Row(..));
        let value = match class {
            _ if is_list => Value::List(&kind, class),
            // The value of an earlier copy may be absent, so its type is left open.
            Some(_) if field.last.is_some() => Value::Optional("Any"),
            Some(class) => Value::Group(class),
            None if field.last.is_some() => Value::Optional(&kind),
            None => Value::Plain(&kind),
        };
        let _ = writeln!(out, "    {}", names.field(wire, value));
    }
}

/// The type of a value or of a list's elements.
enum Element {
    Plain,
    Vec3,
    Record(usize),
}

fn element(shape: &Shape) -> Element {
    match shape {
        Shape::Scalar(Scalar::Vec3 | Scalar::Vec3fa) => Element::Vec3,
        Shape::Record(index) => Element::Record(*index),
        Shape::List(inner, _) | Shape::Row(inner, _) => element(inner),
        _ => Element::Plain,
    }
}

fn python_type(shape: &Shape, shapes: &Shapes<'_>) -> String {
    match shape {
        Shape::Scalar(scalar) => match scalar {
            Scalar::Bool => "bool",
            Scalar::Byte
            | Scalar::Int16
            | Scalar::Uint16
            | Scalar::Int32
            | Scalar::Uint32
            | Scalar::Int64
            | Scalar::Uint64 => "int",
            Scalar::Float | Scalar::Double | Scalar::Angle => "float",
            Scalar::Vec3 | Scalar::Vec3fa => "Vec3",
            Scalar::SkillId | Scalar::SkillId32 | Scalar::Customize => "Dict[str, Any]",
        }
        .to_owned(),
        Shape::Text => "str".to_owned(),
        Shape::Bytes => "bytes".to_owned(),
        Shape::Record(index) => shapes.structs[*index].name.clone(),
        Shape::List(inner, _) | Shape::Row(inner, _) => {
            format!("List[{}]", python_type(inner, shapes))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::{ParseOptions, Set};

    #[test]
    fn nested_groups_lists_and_odd_names_are_declared_before_their_use() {
        let text = "\
array members
- uint64 gameId
- vec3 loc
- array<int32> buffs
object more
- string class
skillid skill
int32[3] row
";
        let set = Set::load([("S_PARTY.2.def", text)], ParseOptions::default());
        assert!(set.problems().next().is_none());
        let source = python(set.definitions().map(|one| (one.name(), one.version(), one.plan())));
        let (_, classes) = source.split_once("\n\n@dataclass").unwrap();
        assert_eq!(
            classes,
            r#"
class SPartyV2More(Fields):
    """`more` of `S_PARTY`."""

    class_: str = named("class", "")


@dataclass
class SPartyV2Members(Fields):
    """`members` of `S_PARTY`."""

    gameId: int = 0
    loc: Vec3 = group(Vec3)
    buffs: List[int] = items(None)


@dataclass
class SPartyV2(Message):
    """`S_PARTY`, version 2."""

    NAME: ClassVar[str] = "tera.S_PARTY"
    VERSION: ClassVar[Optional[int]] = 2
    members: List[SPartyV2Members] = items(SPartyV2Members)
    more: SPartyV2More = group(SPartyV2More)
    skill: Dict[str, Any] = record()
    row: List[int] = items(None)
"#
        );
    }
}
