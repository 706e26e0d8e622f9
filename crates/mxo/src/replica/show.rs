//! Writes views as JSON and text.

use core::fmt::Write as _;

use worldwire_core::json::{self, Style};
use worldwire_core::text::write_value;
use worldwire_core::{Reader, Tree};

use super::view::Held;
use super::{Replica, View};
use crate::message::{Movement, Script};
use crate::rpc::EmoteId;
use crate::types::text;

/// The maximum length of a value in text.
const LONGEST: usize = 48;

impl Replica {
    /// Appends all views as a JSON array, by ID: each object's class, its properties by name in the
    /// forms of [`types`](crate::types), and its movement.
    pub fn write_json(&self, style: Style, out: &mut String) {
        out.push('[');
        for (index, (id, view)) in self.views().enumerate() {
            if index > 0 {
                out.push(',');
            }
            self.view_json(id, view, style, out);
        }
        out.push(']');
    }

    fn view_json(&self, id: u16, view: &View, style: Style, out: &mut String) {
        let _ = write!(out, "{{\"view\":{id},\"goid\":{}", view.goid());
        if let Some(name) = self.objects().name_of(view.goid()) {
            out.push_str(",\"object\":");
            json::string(name, out);
        }
        if let Some(class) = self.objects().class(view.class()) {
            out.push_str(",\"class\":");
            json::string(class.name(), out);
        }
        if view.is_guess() {
            out.push_str(",\"guess\":true");
        }
        if let Some(world) = view.world_id() {
            let _ = write!(out, ",\"world_id\":{world}");
        }
        let _ = write!(out, ",\"spawn_seq\":{},\"properties\":{{", view.spawn_seq());
        for (index, (name, held)) in view.held().into_iter().enumerate() {
            if index > 0 {
                out.push(',');
            }
            json::string(name, out);
            out.push(':');
            if !shown(held, |node| json::write_node(node, style, out)) {
                json::string(&text::decode(&held.bytes), out);
            }
        }
        out.push('}');
        let movement = view.movement();
        if *movement != Movement::default() {
            out.push_str(",\"movement\":{");
            let mut gap = "";
            for (name, value) in numbers(movement) {
                let _ = write!(out, "{gap}\"{name}\":{value}");
                gap = ",";
            }
            if let Some(emote) = emote_of(movement) {
                let _ = write!(out, "{gap}\"emote_name\":\"{emote}\"");
                gap = ",";
            }
            if let Some([x, y, z]) = movement.position {
                let _ = write!(out, "{gap}\"position\":{{");
                for (gap, name, part) in [("", "x", x), (",", "y", y), (",", "z", z)] {
                    let _ = write!(out, "{gap}\"{name}\":");
                    json::float32(part, out);
                }
                out.push('}');
            }
            out.push('}');
        }
        out.push('}');
    }

    /// Appends all views as text: a line for each, followed by its properties and its movement.
    pub fn write_text(&self, out: &mut String) {
        for (id, view) in self.views() {
            let _ = write!(out, "view {id}: ");
            match self.objects().name_of(view.goid()) {
                Some(name) => {
                    let _ = write!(out, "{name} ({})", view.goid());
                }
                None => {
                    let _ = write!(out, "goobj {}", view.goid());
                }
            }
            if let Some(class) = self.objects().class(view.class()) {
                let guess = if view.is_guess() { "guessed " } else { "" };
                let _ = write!(out, ", {guess}class {}", class.name());
            }
            if let Some(world) = view.world_id() {
                let _ = write!(out, ", world object 0x{world:08x}");
            }
            out.push('\n');
            for (name, held) in view.held() {
                let _ = write!(out, "  {name}: ");
                if !shown(held, |node| write_value(node, LONGEST, out)) {
                    let _ = write!(out, "{:?}", text::decode(&held.bytes));
                }
                out.push('\n');
            }
            let movement = view.movement();
            if *movement != Movement::default() {
                out.push_str("  movement:");
                let mut gap = " ";
                for (name, value) in numbers(movement) {
                    let _ = match emote_of(movement).filter(|_| name == "emote") {
                        Some(emote) => write!(out, "{gap}emote {emote}"),
                        None => write!(out, "{gap}{name} {value}"),
                    };
                    gap = "  ";
                }
                if let Some([x, y, z]) = movement.position {
                    let _ = write!(out, "{gap}position x {x:?}  y {y:?}  z {z:?}");
                }
                out.push('\n');
            }
        }
    }
}

/// Shows a value as it appears in a tree. Returns false for length-prefixed text whose length
/// differs from its type's.
fn shown(held: &Held, show: impl FnOnce(worldwire_core::NodeRef<'_, '_>)) -> bool {
    if held.bytes.len() != usize::from(held.kind.size()) {
        return false;
    }
    let mut reader = Reader::traced("value", &held.bytes, Tree::new());
    let read = held.kind.decode(&mut reader, "value");
    let tree = reader.finish();
    match (read, tree.find("value")) {
        (Ok(_), Some(node)) => {
            show(node);
            true
        }
        _ => false,
    }
}

/// The name of the emote that a character plays, if it is known.
fn emote_of(movement: &Movement) -> Option<&'static str> {
    EmoteId::of_script_number(movement.script?.emote_number()?)?.name()
}

/// The integer fields of a movement.
fn numbers(movement: &Movement) -> impl Iterator<Item = (&'static str, u32)> {
    let byte = |value: Option<u8>| value.map(u32::from);
    let (script, number) = match movement.script {
        Some(Script::Emote { id }) => ("emote", Some(id)),
        Some(Script::Effect { id, .. }) => ("effect", Some(id)),
        Some(Script::JackOut { unknown1 }) => ("jack_out", Some(unknown1.into())),
        None => ("script", None),
    };
    let all = [
        ("script_counter", byte(movement.script_counter)),
        (script, number),
        ("animation", byte(movement.animation.map(|both| both.animation))),
        ("mood", byte(movement.animation.map(|both| both.mood))),
        ("action", byte(movement.action)),
        ("yaw", byte(movement.yaw)),
        ("time", movement.time),
    ];
    all.into_iter().filter_map(|(name, value)| Some((name, value?)))
}
