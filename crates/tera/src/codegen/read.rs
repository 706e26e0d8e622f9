//! Generates the code that reads a scope.

use core::fmt::Write as _;

use super::names::uses;
use super::shape::{Shape, Shapes, scalar_type};
use super::steps::{Nesting, Step, steps};
use crate::schema::plan::{Spot, TextPlace};
use crate::types::Scalar;

/// Generates the function that reads a struct for a whole scope.
pub(super) fn of_struct(shapes: &Shapes<'_>, record: usize, visible: &str, out: &mut String) {
    let Some(scope) = shapes.structs[record].scope else { return };
    // A message has the trait's lifetime even if it does not borrow.
    let own = record == 0 || shapes.structs[record].borrows;
    let lifetime = if own { "'d" } else { "'_" };
    let _ = writeln!(
        out,
        "    {visible}fn read(input: &mut Input<{lifetime}>, start: usize) -> Result<Self> {{"
    );
    body(shapes, scope, "        ", out);
    let _ = writeln!(out, "        Ok({})", fields(shapes, record, "Self"));
    out.push_str("    }\n\n");
}

/// Generates the statements that read a scope into variables.
fn body(shapes: &Shapes<'_>, scope: u32, indent: &str, out: &mut String) {
    let plan = shapes.plan;
    let scope = plan.scope(scope);
    let mut reading = Reading { shapes, segment: 0, text: String::new() };
    reading.steps(&steps(plan, &scope.wire), &Nesting::default(), indent);
    let fixed = if uses(&reading.text, "fixed0") { "let fixed0 = " } else { "" };
    let _ = writeln!(out, "{indent}{fixed}input.scope::<{}>(start, {})?;", scope.size, scope.cost);
    out.push_str(&reading.text);
}

/// An expression that builds a struct from the variables of its fields.
fn fields(shapes: &Shapes<'_>, record: usize, name: &str) -> String {
    let one = &shapes.structs[record];
    if one.fields.is_empty() {
        return format!("{name} {{}}");
    }
    let parts = one.fields.iter().map(|field| {
        let value = value(shapes, &field.shape, field.index);
        let value = if field.last.is_some() { format!("Some({value})") } else { value };
        format!("{}: {value}", field.name)
    });
    format!("{name} {{ {} }}", parts.collect::<Vec<_>>().join(", "))
}

/// The expression for a field's value.
fn value(shapes: &Shapes<'_>, shape: &Shape, field: u32) -> String {
    match shape {
        // Objects are built at the end, since their parts may not be adjacent.
        Shape::Record(record) if shapes.structs[*record].scope.is_none() => {
            fields(shapes, *record, &shapes.structs[*record].name)
        }
        _ => format!("f{field}"),
    }
}

struct Reading<'s, 'p> {
    shapes: &'s Shapes<'p>,
    segment: u16,
    text: String,
}

impl Reading<'_, '_> {
    fn steps(&mut self, steps: &[Step], nesting: &Nesting, indent: &str) {
        for step in steps {
            self.step(step, nesting, indent);
        }
    }

    fn line(&mut self, indent: &str, line: &str) {
        let _ = writeln!(self.text, "{indent}{line}");
    }

    fn step(&mut self, step: &Step, nesting: &Nesting, indent: &str) {
        let plan = self.shapes.plan;
        match step {
            Step::Scalar { scalar, spot, field } => {
                let read = scalar_at(*scalar, *spot, nesting);
                self.line(indent, &format!("let f{field} = {read};"));
            }
            Step::Text { place, field } => {
                let read = match place {
                    TextPlace::Offset(spot) => {
                        format!("text({}, {})", word(*spot, nesting), place_of(*spot, nesting))
                    }
                    TextPlace::Here(spot) => format!("text_here({})", place_of(*spot, nesting)),
                };
                let error = nesting.to_error(plan, *field);
                self.line(indent, &format!("let f{field} = input.{read}{error}?;"));
            }
            Step::Bytes { offset, count, field } => {
                let (words, places) = pair(*count, *offset, nesting);
                let error = nesting.to_error(plan, *field);
                self.line(
                    indent,
                    &format!("let f{field} = input.bytes({words}, ({places})){error}?;"),
                );
            }
            Step::Array { .. } => self.array(step, nesting, indent),
            Step::Object { field, steps } => {
                self.steps(steps, &nesting.inside_object(plan, *field), indent);
            }
            Step::Row { field, steps, count, apart } => {
                self.row(*field, steps, (*count, *apart), nesting, indent);
            }
            Step::Segment { size } => self.next_segment(*size, indent),
            Step::Group { lists, .. } => {
                self.line(indent, "let before = input.cursor();");
                let mut ends = Vec::new();
                for list in lists {
                    self.step(list, nesting, indent);
                    if let Step::Array { field, .. } = list {
                        self.line(indent, &format!("let end{field} = input.cursor();"));
                        ends.push(format!("(f{field}.len(), end{field})"));
                    }
                }
                let ends = ends.join(", ");
                self.line(indent, &format!("input.close_group(before, &[{ends}]);"));
            }
        }
    }

    /// Reads a later segment; unused variables are not declared.
    fn next_segment(&mut self, size: u32, indent: &str) {
        self.segment += 1;
        let segment = self.segment;
        let line = format!("let (at{segment}, fixed{segment}) = input.segment::<{size}>()?;");
        self.line(indent, &line);
        self.line(indent, &format!("let _ = (at{segment}, fixed{segment});"));
    }

    fn array(&mut self, step: &Step, nesting: &Nesting, indent: &str) {
        let Step::Array { count, offset, scope, field } = step else { return };
        let plan = self.shapes.plan;
        let (words, _) = pair(*count, *offset, nesting);
        let place = place_of(*offset, nesting);
        let least = 4 + plan.scope(*scope).size;
        let error = nesting.to_error(plan, *field);
        let Shape::List(inner, _) = self.shapes.shape_of(*field).clone() else { return };
        if let Shape::Record(record) = *inner
            && self.shapes.structs[record].scope == Some(*scope)
        {
            let name = &self.shapes.structs[record].name;
            let line = format!(
                "let f{field} = input.list({words}, {place}, {least}, {name}::read){error}?;"
            );
            self.line(indent, &line);
            return;
        }
        self.line(
            indent,
            &format!("let f{field} = input.list({words}, {place}, {least}, |input, start| {{"),
        );
        let deeper = format!("{indent}    ");
        body(self.shapes, *scope, &deeper, &mut self.text);
        let element = plan.scope(*scope).fields.start;
        let value = value(self.shapes, &inner, element);
        self.line(&deeper, &format!("Ok({value})"));
        self.line(indent, &format!("}}){error}?;"));
    }

    fn row(
        &mut self,
        field: u32,
        steps: &[Step],
        row: (usize, u16),
        nesting: &Nesting,
        indent: &str,
    ) {
        let plan = self.shapes.plan;
        let shape = self.shapes.shape_of(field).clone();
        let Shape::Row(inner, _) = &shape else { return };
        let first = match plan.field(field).kind() {
            crate::schema::plan::FieldKind::Row(range) => range.start,
            _ => return,
        };
        let (count, apart) = row;
        let kind = self.shapes.rust_type(&shape);
        let empty = if shape.is_long_row() {
            format!("vec![Default::default(); {count}]")
        } else {
            "Default::default()".to_owned()
        };
        self.line(indent, &format!("let mut f{field}: {kind} = {empty};"));
        let deeper = format!("{indent}    ");
        let outside = core::mem::take(&mut self.text);
        self.steps(steps, &nesting.inside_row(plan, field, apart), &deeper);
        let inside = core::mem::replace(&mut self.text, outside);
        let (index, item) = (nesting.index(), nesting.item());
        let value = value(self.shapes, inner, first);
        let line = if uses(&inside, &index) {
            format!("for ({index}, {item}) in f{field}.iter_mut().enumerate() {{")
        } else {
            format!("for {item} in &mut f{field} {{")
        };
        self.line(indent, &line);
        self.text.push_str(&inside);
        self.line(&deeper, &format!("*{item} = {value};"));
        self.line(indent, "}");
    }
}

/// Count and offset, and their positions.
fn pair(count: Spot, offset: Spot, nesting: &Nesting) -> (String, String) {
    let words = format!("{}, {}", word(count, nesting), word(offset, nesting));
    (words, format!("{}, {}", place_of(count, nesting), place_of(offset, nesting)))
}

fn word(spot: Spot, nesting: &Nesting) -> String {
    format!("word(fixed{}, {})", spot.segment, nesting.offset(spot))
}

/// The position of a spot in the message.
fn place_of(spot: Spot, nesting: &Nesting) -> String {
    match spot.segment {
        0 => nesting.relative_to("start", spot),
        further => nesting.relative_to(&format!("at{further}"), spot),
    }
}

fn scalar_at(scalar: Scalar, spot: Spot, nesting: &Nesting) -> String {
    let at = format!("(fixed{}, {})", spot.segment, nesting.offset(spot));
    let number = |kind: &str| format!("{kind}::from_le_bytes(part{at})");
    match scalar {
        Scalar::Bool => format!("part{at} != [0]"),
        Scalar::Angle => format!("Angle({})", number("i16")),
        Scalar::Vec3 | Scalar::Vec3fa => format!("floats{at}"),
        Scalar::SkillId => {
            format!("Skill::from_raw({}, SkillForm::Wide)", number("u64"))
        }
        Scalar::SkillId32 => {
            format!("Skill::from_raw({}.into(), SkillForm::Narrow)", number("u32"))
        }
        Scalar::Customize => format!("part{at}"),
        _ => number(scalar_type(scalar)),
    }
}
