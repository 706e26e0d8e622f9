//! Generates the code that writes a scope.

use core::fmt::Write as _;

use super::names::uses;
use super::shape::{Shape, Shapes};
use super::steps::{Nesting, Step, steps};
use crate::schema::plan::{Spot, TextPlace};
use crate::types::Scalar;

/// Generates the function that writes the struct of a scope.
pub(super) fn of_scope(shapes: &Shapes<'_>, scope: u32, visible: &str, out: &mut String) {
    let _ = writeln!(out, "    {visible}fn write(&self, output: &mut Output<'_>) -> Result<()> {{");
    body(shapes, scope, "self", "        ", out);
    out.push_str("        Ok(())\n    }\n");
}

/// Generates the statements that write a scope; `from` is the struct, or a plain value.
fn body(shapes: &Shapes<'_>, scope: u32, from: &str, indent: &str, out: &mut String) {
    let plan = shapes.plan;
    let scope = plan.scope(scope);
    let steps = steps(plan, &scope.wire);
    let nesting = Nesting::default();
    let mut writing = Writing { shapes, all: &steps, from, segment: 0, text: String::new() };
    writing.bodies(&steps, &nesting, from, indent);
    let bodies = core::mem::take(&mut writing.text);
    writing.segment(0, scope.size, uses(&bodies, "at0"), indent);
    out.push_str(&writing.text);
    out.push_str(&bodies);
}

struct Writing<'s, 'p> {
    shapes: &'s Shapes<'p>,
    /// The steps of the scope, and the struct or value being written.
    all: &'s [Step],
    from: &'s str,
    segment: u16,
    text: String,
}

impl Writing<'_, '_> {
    fn line(&mut self, indent: &str, line: &str) {
        let _ = writeln!(self.text, "{indent}{line}");
    }

    /// Generates the fixed part of a segment, with all its fixed-size fields.
    fn segment(&mut self, segment: u16, size: u32, named: bool, indent: &str) {
        let outside = core::mem::take(&mut self.text);
        let (all, from) = (self.all, self.from);
        self.fixed(all, segment, &Nesting::default(), from, &format!("{indent}    "));
        let inside = core::mem::replace(&mut self.text, outside);
        let name = if named { format!("let at{segment} = ") } else { String::new() };
        if inside.is_empty() {
            self.line(indent, &format!("{name}output.fixed::<{size}>(|_| Ok(()))?;"));
            return;
        }
        self.line(indent, &format!("{name}output.fixed::<{size}>(|fixed| {{"));
        self.text.push_str(&inside);
        self.line(&format!("{indent}    "), "Ok(())");
        self.line(indent, "})?;");
    }

    /// The expression for a field's value; `from` is the enclosing record, or the value itself.
    fn place(&self, field: u32, from: &str) -> String {
        match self.shapes.named.get(&field) {
            Some((name, None)) => format!("{from}.{name}"),
            Some((name, Some(last))) => format!("{from}.{name}.unwrap_or({from}.{last})"),
            None => from.to_owned(),
        }
    }

    /// A reference to a field's value.
    fn reference(&self, field: u32, from: &str) -> String {
        // Elements and values of rows are already references.
        let borrow = if self.shapes.named.contains_key(&field) { "&" } else { "" };
        format!("{borrow}{}", self.place(field, from))
    }

    fn fixed(&mut self, steps: &[Step], segment: u16, nesting: &Nesting, from: &str, indent: &str) {
        let plan = self.shapes.plan;
        for step in steps {
            match step {
                Step::Scalar { scalar, spot, field } if spot.segment == segment => {
                    let (value, at) = (self.place(*field, from), nesting.offset(*spot));
                    let error = nesting.to_error(plan, *field);
                    self.line(indent, &put(*scalar, &at, &value, &error));
                }
                Step::Object { field, steps } => {
                    let (nesting, from) =
                        (nesting.inside_object(plan, *field), self.place(*field, from));
                    self.fixed(steps, segment, &nesting, &from, indent);
                }
                Step::Row { field, steps, count, apart } => {
                    let (index, item) = (nesting.index(), nesting.item());
                    let inner = nesting.inside_row(plan, *field, *apart);
                    let outside = core::mem::take(&mut self.text);
                    self.fixed(steps, segment, &inner, &item, &format!("{indent}    "));
                    let inside = core::mem::replace(&mut self.text, outside);
                    if inside.is_empty() {
                        continue;
                    }
                    let (shape, values) = (self.shapes.shape_of(*field), self.place(*field, from));
                    let Shape::Row(value, _) = shape else { continue };
                    let pattern = if value.is_plain() { format!("&{item}") } else { item };
                    let take =
                        if shape.is_long_row() { format!(".take({count})") } else { String::new() };
                    let line = if uses(&inside, &index) {
                        format!("for ({index}, {pattern}) in {values}.iter(){take}.enumerate() {{")
                    } else {
                        format!("for {pattern} in {values}.iter(){take} {{")
                    };
                    self.line(indent, &line);
                    self.text.push_str(&inside);
                    self.line(indent, "}");
                }
                _ => {}
            }
        }
    }

    fn bodies(&mut self, steps: &[Step], nesting: &Nesting, from: &str, indent: &str) {
        let plan = self.shapes.plan;
        for step in steps {
            match step {
                Step::Scalar { .. } => {}
                Step::Text { place, field } => {
                    let (text, error) =
                        (self.reference(*field, from), nesting.to_error(plan, *field));
                    let line = match place {
                        TextPlace::Offset(spot) => {
                            format!("output.text({}, {text}){error}?;", place_of(*spot, nesting))
                        }
                        TextPlace::Here(_) => format!("output.text_here({text}){error}?;"),
                    };
                    self.line(indent, &line);
                }
                Step::Bytes { offset, count, field } => {
                    let (bytes, error) =
                        (self.reference(*field, from), nesting.to_error(plan, *field));
                    let places = places(*count, *offset, nesting);
                    self.line(indent, &format!("output.bytes({places}, {bytes}){error}?;"));
                }
                Step::Array { count, offset, scope, field } => {
                    let (items, error) =
                        (self.reference(*field, from), nesting.to_error(plan, *field));
                    let places = places(*count, *offset, nesting);
                    let plain = self.shapes.element_of(*field).is_some_and(Shape::is_plain);
                    let item = if plain { "&item" } else { "item" };
                    let line = format!("output.list({places}, {items}, |output, {item}|");
                    self.element(&line, *scope, *field, &format!("){error}?;"), indent);
                }
                Step::Object { field, steps } => {
                    let (nesting, from) =
                        (nesting.inside_object(plan, *field), self.place(*field, from));
                    self.bodies(steps, &nesting, &from, indent);
                }
                Step::Row { field, steps, count, apart } => {
                    let row = (steps.as_slice(), *count, *apart);
                    self.row(*field, row, nesting, from, indent);
                }
                Step::Segment { size } => {
                    self.segment += 1;
                    // The position may be unused.
                    let segment = self.segment;
                    self.segment(segment, *size, true, indent);
                    self.line(indent, &format!("let _ = at{segment};"));
                }
                Step::Group { lists, pairs } => self.group(lists, *pairs, nesting, from, indent),
            }
        }
    }

    /// Generates a closure that writes an element, `item`. `prefix` comes before the closure's
    /// parameters, and `suffix` after the closure.
    fn element(&mut self, prefix: &str, scope: u32, field: u32, suffix: &str, indent: &str) {
        if let Some(Shape::Record(record)) = self.shapes.element_of(field)
            && self.shapes.structs[*record].scope == Some(scope)
        {
            self.line(indent, &format!("{prefix} item.write(output){suffix}"));
            return;
        }
        self.line(indent, &format!("{prefix} {{"));
        let deeper = format!("{indent}    ");
        body(self.shapes, scope, "item", &deeper, &mut self.text);
        self.line(&deeper, "Ok(())");
        self.line(indent, &format!("}}{suffix}"));
    }

    fn row(
        &mut self,
        field: u32,
        (steps, count, apart): (&[Step], usize, u16),
        nesting: &Nesting,
        from: &str,
        indent: &str,
    ) {
        let plan = self.shapes.plan;
        let (shape, values) = (self.shapes.shape_of(field), self.place(field, from));
        let Shape::Row(value, _) = shape else { return };
        let (long, kind) = (shape.is_long_row(), self.shapes.rust_type(value));
        if long {
            let error = nesting.to_error(plan, field);
            self.line(indent, &format!("row({values}.len(), {count}){error}?;"));
        }
        let (index, item) = (nesting.index(), nesting.item());
        let outside = core::mem::take(&mut self.text);
        self.bodies(
            steps,
            &nesting.inside_row(plan, field, apart),
            &item,
            &format!("{indent}    "),
        );
        let inside = core::mem::replace(&mut self.text, outside);
        if inside.is_empty() {
            return;
        }
        if long {
            let kind = kind.replace("<'d>", "<'_>").replace("<'d, ", "<'_, ");
            self.line(indent, &format!("let none{field}: {kind} = Default::default();"));
            self.line(indent, &format!("for {index} in 0..{count} {{"));
            let line = format!("    let {item} = {values}.get({index}).unwrap_or(&none{field});");
            self.line(indent, &line);
        } else if uses(&inside, &index) {
            self.line(indent, &format!("for ({index}, {item}) in {values}.iter().enumerate() {{"));
        } else {
            self.line(indent, &format!("for {item} in {values}.iter() {{"));
        }
        self.text.push_str(&inside);
        self.line(indent, "}");
    }

    fn group(&mut self, lists: &[Step], pairs: bool, nesting: &Nesting, from: &str, indent: &str) {
        let plan = self.shapes.plan;
        let mut rounds = String::from("0");
        for list in lists {
            let Step::Array { count, offset, field, .. } = list else { continue };
            let (items, error) = (self.place(*field, from), nesting.to_error(plan, *field));
            let places = places(*count, *offset, nesting);
            let line =
                format!("let mut lane{field} = output.lane({places}, {items}.len()){error}?;");
            self.line(indent, &line);
            rounds.push_str(&format!(".max({items}.len())"));
        }
        if pairs {
            let numbers = lists.iter().filter_map(|list| self.numbers(list, from));
            let numbers = numbers.collect::<Vec<_>>().join(", ");
            self.line(indent, &format!("for (list, index) in pairs({numbers}) {{"));
        } else {
            let rounds = rounds.replacen('0', "0_usize", 1);
            self.line(indent, &format!("for round in 0..{rounds} {{"));
        }
        let inner = format!("{indent}    ");
        for (number, list) in lists.iter().enumerate() {
            let Step::Array { scope, field, .. } = list else { continue };
            let (items, error) = (self.place(*field, from), nesting.to_error(plan, *field));
            let plain = self.shapes.element_of(*field).is_some_and(Shape::is_plain);
            let pattern = if plain { "&item" } else { "item" };
            self.line(
                &inner,
                &if pairs {
                    format!("if let ({number}, Some({pattern})) = (list, {items}.get(index)) {{")
                } else {
                    format!("if let Some({pattern}) = {items}.get(round) {{")
                },
            );
            let deeper = format!("{inner}    ");
            let line = format!("output.element(&mut lane{field}, |output|");
            self.element(&line, *scope, *field, &format!("){error}?;"), &deeper);
            self.line(&inner, "}");
        }
        self.line(indent, "}");
    }

    /// The numbers that the elements of a paired list begin with.
    fn numbers(&self, list: &Step, from: &str) -> Option<String> {
        let Step::Array { scope, field, .. } = list else { return None };
        let number = self.shapes.plan.scope(*scope).fields.start;
        let (items, number) = (self.place(*field, from), self.place(number, "item"));
        Some(format!("{items}.iter().map(|item| {number})"))
    }
}

/// The position of a spot in the output.
fn place_of(spot: Spot, nesting: &Nesting) -> String {
    nesting.relative_to(&format!("at{}", spot.segment), spot)
}

/// The positions of count and offset.
fn places(count: Spot, offset: Spot, nesting: &Nesting) -> String {
    format!("({}, {})", place_of(count, nesting), place_of(offset, nesting))
}

/// The statement that writes a fixed-size value.
fn put(scalar: Scalar, at: &str, value: &str, error: &str) -> String {
    match scalar {
        Scalar::Bool => format!("put(fixed, {at}, [u8::from({value})]);"),
        Scalar::Byte => format!("put(fixed, {at}, [{value}]);"),
        Scalar::Angle => format!("put(fixed, {at}, {value}.0.to_le_bytes());"),
        Scalar::Vec3 | Scalar::Vec3fa => format!("put_floats(fixed, {at}, {value});"),
        Scalar::SkillId => format!("put(fixed, {at}, wide({value}){error}?.to_le_bytes());"),
        Scalar::SkillId32 => format!("put(fixed, {at}, narrow({value}){error}?.to_le_bytes());"),
        Scalar::Customize => format!("put(fixed, {at}, {value});"),
        _ => format!("put(fixed, {at}, {value}.to_le_bytes());"),
    }
}
