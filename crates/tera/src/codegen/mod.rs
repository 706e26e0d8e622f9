//! Typed Rust from definitions: for servers and tools that speak one build and want it fast.
//!
//! Every definition becomes a struct that implements [`Typed`](crate::message::typed::Typed), with
//! one more struct for each object and each array with fields. They decode and encode exactly as
//! the definition does, without looking anything up: the layout is in the code.
//!
//! | type | Rust |
//! | --- | --- |
//! | `bool`, `byte`, whole numbers | `bool`, `u8`, `i16` to `u64` |
//! | `float`, `double` | `f32`, `f64` |
//! | `angle` | [`Angle`](crate::types::Angle) |
//! | `vec3`, `vec3fa` | `[f32; 3]`; the latter in units |
//! | `skillid`, `skillid32` | [`Skill`](crate::types::Skill) |
//! | `customize` | `[u8; 8]` |
//! | `string` | [`Text`](crate::types::Text): UTF-16 that is borrowed, half surrogates and all |
//! | `bytes` | `Cow<[u8]>` |
//! | `array` | `Vec` |
//! | `object` | a struct; the format has no missing objects |
//! | `T[n]` | `[T; n]` up to 32 values, else a `Vec` that is padded when it is written |
//! | an earlier copy of a field | `Option`: `None` is written as the last copy is; a plain value, when the last copy is of another type |
//!
//! The text is always the same for the same definitions. It is meant for a module of its own, with
//! `#[rustfmt::skip]` and `#[allow(clippy::all)]` on it.
//!
//! ```
//! use worldwire_tera::codegen::rust;
//! use worldwire_tera::schema::{ParseOptions, Set};
//!
//! let set = Set::load([("S_GREETING.1.def", "int32 id\nstring name\n")], ParseOptions::default());
//! let made = rust(set.definitions().map(|one| (one.name(), one.version(), one.plan())));
//! assert!(made.contains("pub struct SGreetingV1<'d> {"));
//! assert!(made.contains("    pub name: Text<'d>,"));
//! ```

mod names;
mod read;
mod shape;
mod steps;
mod write;

use core::fmt::Write as _;

use worldwire_core::codegen::{Taken, quoted};

use crate::schema::Plan;
use names::{code, uses};
use shape::{Shape, Shapes, Struct};

/// The Rust source for definitions, given as their names, versions and plans.
#[must_use]
pub fn rust<'p>(definitions: impl IntoIterator<Item = (&'p str, u32, &'p Plan)>) -> String {
    let mut out = String::from(
        "// Made by worldwire from message definitions. Changes are lost when it is made again.\n\n",
    );
    let mut taken = Taken::default();
    let mut body = String::new();
    for (name, version, plan) in definitions {
        let shapes = Shapes::of(name, version, plan, &mut taken);
        message(name, version, &shapes, &mut body);
    }
    imports(&body, &mut out);
    out.push_str(&body);
    out
}

/// What the made code names without saying where it is from.
fn imports(body: &str, out: &mut String) {
    let plain: String = body
        .lines()
        .filter(|line| !line.trim_start().starts_with("///"))
        .flat_map(|line| [line, "\n"])
        .collect();
    let used = |names: &[&'static str]| -> Vec<&'static str> {
        names.iter().copied().filter(|name| uses(&plain, name)).collect()
    };
    let called =
        |name: &&str| [" ", "("].iter().any(|front| plain.contains(&format!("{front}{name}(")));
    let line = |path: &str, names: &[&str], out: &mut String| {
        let _ = match names {
            [] => Ok(()),
            [one] => writeln!(out, "use {path}::{one};"),
            _ => writeln!(out, "use {path}::{{{}}};", names.join(", ")),
        };
    };
    let cow = used(&["Cow"]);
    line("std::borrow", &cow, out);
    if !cow.is_empty() {
        out.push('\n');
    }
    line("worldwire_core", &used(&["Result"]), out);
    line("worldwire_tera::message", &used(&["Value"]), out);
    let functions =
        ["floats", "narrow", "pairs", "part", "put", "put_floats", "row", "wide", "word"];
    let mut typed = used(&["Input", "Output", "Typed"]);
    typed.extend(functions.into_iter().filter(called));
    line("worldwire_tera::message::typed", &typed, out);
    line("worldwire_tera::types", &used(&["Angle", "Skill", "SkillForm", "Text"]), out);
}

/// The structs of one definition, and how they are read and written.
fn message(name: &str, version: u32, shapes: &Shapes<'_>, out: &mut String) {
    for (index, one) in shapes.structs.iter().enumerate() {
        let about = match index {
            0 => format!("{}, version {version}.", code(name)),
            _ => format!("{} of {}.", code(&one.path), code(name)),
        };
        declare(one, &about, shapes, out);
        if index == 0 {
            let lifetime = shapes.lifetime(0);
            let _ = writeln!(out, "\nimpl<'d> Typed<'d> for {}{lifetime} {{", one.name);
            let _ = writeln!(out, "    const NAME: &'static str = {};", quoted(name));
            let _ = writeln!(out, "    const VERSION: u32 = {version};");
            let _ = writeln!(out, "    const WORDS: usize = {};\n", shapes.plan.words);
            read::of_struct(shapes, index, "", out);
            write::of_scope(shapes, shapes.plan.root, "", out);
            out.push('\n');
            values(one, "", out);
            out.push_str("}\n");
            continue;
        }
        // A struct without texts and bytes is read from any message.
        let (parameter, own) = if one.borrows { ("<'d>", "<'d>") } else { ("", "") };
        let _ = writeln!(out, "\nimpl{parameter} {}{own} {{", one.name);
        if let Some(scope) = one.scope {
            read::of_struct(shapes, index, "pub(crate) ", out);
            write::of_scope(shapes, scope, "pub(crate) ", out);
            out.push('\n');
        }
        out.push_str("    /// The fields as the definition has them.\n    ///\n    /// # Errors\n");
        out.push_str("    /// Value, for a skill whose parts have no room.\n");
        values(one, "pub ", out);
        out.push_str("}\n");
    }
}

fn declare(one: &Struct, about: &str, shapes: &Shapes<'_>, out: &mut String) {
    let _ = writeln!(out, "\n/// {about}");
    if !one.fields.is_empty() {
        out.push_str("///\n/// | field | type |\n/// | --- | --- |\n");
        for field in &one.fields {
            let wire = shapes.plan.field(field.index).name();
            let _ = writeln!(out, "/// | {} | `{}` |", code(wire), field.shape.wire_type());
        }
    }
    out.push_str("#[derive(Clone, Debug, Default, PartialEq)]\n");
    let lifetime = if one.borrows { "<'d>" } else { "" };
    if one.fields.is_empty() {
        let _ = writeln!(out, "pub struct {}{lifetime} {{}}", one.name);
        return;
    }
    let _ = writeln!(out, "pub struct {}{lifetime} {{", one.name);
    for field in &one.fields {
        let _ = writeln!(out, "    /// `{}`.", field.shape.wire_type());
        let kind = shapes.rust_type(&field.shape);
        let kind = if field.last.is_some() { format!("Option<{kind}>") } else { kind };
        let _ = writeln!(out, "    pub {}: {kind},", field.name);
    }
    out.push_str("}\n");
}

/// The function that gives the values of a struct.
fn values(one: &Struct, visible: &str, out: &mut String) {
    let _ = writeln!(out, "    {visible}fn value(&self) -> Result<Value<'_>> {{");
    out.push_str("        Ok(Value::Record(vec![\n");
    for field in &one.fields {
        let value = match field.last {
            Some(_) => {
                let inner = value_of(&field.shape, "copy");
                format!(
                    "match self.{} {{ Some(copy) => {inner}, None => Value::Absent }}",
                    field.name
                )
            }
            None => value_of(&field.shape, &format!("self.{}", field.name)),
        };
        let _ = writeln!(out, "            {value},");
    }
    out.push_str("        ]))\n    }\n");
}

/// The value at a place, as an expression; it may use `?`.
fn value_of(shape: &Shape, place: &str) -> String {
    use crate::types::Scalar;
    match shape {
        Shape::Scalar(scalar) => match scalar {
            Scalar::Bool => format!("Value::Bool({place})"),
            Scalar::Byte | Scalar::Uint16 | Scalar::Uint32 => {
                format!("Value::Unsigned({place}.into())")
            }
            Scalar::Uint64 => format!("Value::Unsigned({place})"),
            Scalar::Int16 | Scalar::Int32 => format!("Value::Signed({place}.into())"),
            Scalar::Int64 => format!("Value::Signed({place})"),
            Scalar::Float => format!("Value::Float({place})"),
            Scalar::Double => format!("Value::Double({place})"),
            Scalar::Angle => format!("Value::Angle({place})"),
            Scalar::Vec3 => format!("Value::Vec3({place})"),
            Scalar::Vec3fa => format!("Value::Vec3fa({place})"),
            Scalar::SkillId => format!("Value::Skill(wide({place})?)"),
            Scalar::SkillId32 => format!("Value::Skill(narrow({place})?.into())"),
            Scalar::Customize => format!("Value::Customize({place})"),
        },
        Shape::Text => format!("Value::Text(Text::from_bytes({place}.as_bytes()))"),
        Shape::Bytes => format!("Value::Bytes(Cow::Borrowed(&{place}))"),
        Shape::Record(_) => format!("{place}.value()?"),
        Shape::List(inner, _) | Shape::Row(inner, _) => {
            let pattern = if inner.is_plain() { "&item" } else { "item" };
            let value = value_of(inner, "item");
            let value = match value.strip_suffix('?') {
                Some(outcome) => outcome.to_owned(),
                None => format!("Ok({value})"),
            };
            format!("Value::List({place}.iter().map(|{pattern}| {value}).collect::<Result<_>>()?)")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::{Definition, FileName, ParseOptions};

    #[test]
    fn names_cannot_leave_their_places() {
        let file = FileName::parse("S_A.1.def").unwrap();
        let definition = Definition::parse(&file, "int32 a\n", &ParseOptions::default()).unwrap();
        let plan = definition.plan();
        let hostile = "*/ }\nfn main() {} // \"; ``` \u{202e}";
        let made = rust([(hostile, 1, plan), ("S_A", 1, plan), ("s_a", 1, plan), ("", 0, plan)]);
        let names: Vec<&str> =
            made.lines().filter_map(|line| line.strip_prefix("pub struct ")).collect();
        assert_eq!(names, ["FnMainV1 {", "SAV1 {", "SAV1No2 {", "TypeV0 {"]);
        assert!(made.lines().all(|line| !line.starts_with("fn")), "{made}");
        assert!(made.contains(r#"= "*/ }\nfn main() {} // \"; ``` \u{202e}";"#), "{made}");
        assert_eq!(rust([]).lines().count(), 2);
    }
}
