//! TERA's definitions as Lua.

use worldwire_dissect::{Definitions, TeraDefinitions};
use worldwire_tera::message::HeaderForm;
use worldwire_tera::schema::Plan;
use worldwire_tera::schema::plan::{Field, FieldKind, Spot, TextPlace};
use worldwire_tera::types::Scalar;

use super::Part;
use super::lua::Lua;
use crate::output::Failure;

/// How deeply objects and lists can be nested: Lua's parser has limits.
const MAX_DEPTH: usize = 30;

pub(super) fn part(definitions: &Definitions) -> Result<Part, Failure> {
    let tera = definitions.part::<TeraDefinitions>();
    let packets = tera.shared();
    if !packets.has_map() {
        let maps = tera.library().opcodes.len();
        let problem = match maps {
            0 => "needs an opcode map; supply a directory of definitions and maps with --data",
            _ => "there are several opcode maps; choose one with --revision",
        };
        return Err(Failure::Run(format!("export wireshark tera: {problem}")));
    }
    let (mut lua, mut messages, mut opaque) = (Lua::default(), 0, Vec::new());
    lua.line(
        "-- By opcode: the name, whether counter and checksum precede the fields, and the fields.",
    );
    lua.line("local MESSAGES = {}");
    for (opcode, _) in packets.names().iter() {
        let Some(packet) = u16::try_from(opcode).ok().and_then(|opcode| packets.get(opcode)) else {
            continue;
        };
        let is_sealed = packet.form == HeaderForm::Integrity;
        let plan = packet.definition.map(|definition| definition.plan());
        let fields = plan.map(|plan| fields(plan, plan.fields(), 0));
        if matches!(fields, Some(None)) {
            opaque.push(packet.name.to_owned());
        }
        let fields = fields.flatten();
        messages += usize::from(fields.is_some());
        let fields = fields.map(|fields| format!(", {fields}")).unwrap_or_default();
        let name = Lua::quoted(packet.name);
        lua.line(&format!("MESSAGES[{opcode}] = {{ {name}, {is_sealed}{fields} }}"));
    }
    Ok(Part {
        prefix: "tera",
        title: "TERA",
        transports: "\"tcp\"",
        tables: lua.into_source(),
        code: include_str!("tera.lua"),
        messages,
        opaque,
    })
}

/// The fields of a scope. `None` if a field's position depends on the fields before it, or if the
/// fields are nested too deeply.
fn fields(plan: &Plan, fields: &[Field], depth: usize) -> Option<String> {
    if depth > MAX_DEPTH {
        return None;
    }
    let entries: Option<Vec<String>> =
        fields.iter().map(|field| entry(plan, field, depth + 1)).collect();
    Some(format!("{{ {} }}", entries?.join(", ")))
}

fn entry(plan: &Plan, field: &Field, depth: usize) -> Option<String> {
    let name = Lua::quoted(field.name());
    Some(match field.kind() {
        FieldKind::Scalar { scalar, spot } => {
            format!("{{ {name}, \"{}\", {} }}", scalar_kind(*scalar), place(*spot)?)
        }
        FieldKind::Text { place: TextPlace::Offset(spot) } => {
            format!("{{ {name}, {{ \"T\" }}, {} }}", place(*spot)?)
        }
        FieldKind::Text { place: TextPlace::Here(_) } => return None,
        FieldKind::Bytes { offset, count } => {
            format!("{{ {name}, {{ \"Y\", {} }}, {} }}", place(*count)?, place(*offset)?)
        }
        FieldKind::Array { interleaved: true, .. } => return None,
        FieldKind::Array { count, offset, scope, .. } => {
            let (inner, is_single) = plan.element(*scope);
            let inner = fields(plan, inner, depth)?;
            let (count, offset) = (place(*count)?, place(*offset)?);
            format!("{{ {name}, {{ \"A\", {count}, {inner}, {is_single} }}, {offset} }}")
        }
        FieldKind::Object(range) => {
            format!("{{ {name}, {{ \"O\", {} }} }}", fields(plan, plan.fields_of(range), depth)?)
        }
        FieldKind::Row(range) => {
            format!("{{ {name}, {{ \"R\", {} }} }}", fields(plan, plan.fields_of(range), depth)?)
        }
    })
}

/// The offset of a field in the first part of its scope.
fn place(spot: Spot) -> Option<u16> {
    (spot.segment == 0).then_some(spot.offset)
}

fn scalar_kind(scalar: Scalar) -> &'static str {
    match scalar {
        Scalar::Bool => "b1",
        Scalar::Byte => "u1",
        Scalar::Int16 => "i2",
        Scalar::Uint16 => "u2",
        Scalar::Int32 => "i4",
        Scalar::Uint32 => "u4",
        Scalar::Int64 => "i8",
        Scalar::Uint64 => "u8",
        Scalar::Float => "f4",
        Scalar::Double => "f8",
        Scalar::Angle => "angle",
        Scalar::Vec3 => "vec3",
        Scalar::Vec3fa => "vec3fa",
        Scalar::SkillId => "skill8",
        Scalar::SkillId32 => "skill4",
        Scalar::Customize => "customize",
    }
}

#[cfg(test)]
mod tests {
    use worldwire_tera::schema::{Definition, FileName, ParseOptions};

    use super::*;

    #[test]
    fn what_is_nested_too_deeply_is_left_out() {
        for (levels, is_described) in [(MAX_DEPTH, true), (MAX_DEPTH + 1, false)] {
            let lines = (0..levels).map(|level| format!("{}object o\n", "-".repeat(level)));
            let text: String = lines.chain([format!("{}byte x\n", "-".repeat(levels))]).collect();
            let file = FileName::parse("S_A.1.def").unwrap();
            let definition = Definition::parse(&file, &text, &ParseOptions::default()).unwrap();
            let plan = definition.plan();
            assert_eq!(fields(plan, plan.fields(), 0).is_some(), is_described, "{levels}");
        }
    }
}
