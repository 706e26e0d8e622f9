//! Generated objects, for tests, fuzzing and benchmarks.

use worldwire_core::{Result, Sampler};

use super::parse::wide_bytes;
use super::value::Object;
use super::visitor::{CoreId, Leaf, Slot, Visitor};
use crate::schema::classes::{Class, Classes, Part, Property, PropertyKind, Tuple};

/// The nesting depth of generated objects.
const DEPTH: u32 = 3;

impl Object {
    /// Generates an object of a class. If `complete`, the object has everything that a shallow
    /// stream needs, in class order; otherwise, properties are missing or out of order.
    ///
    /// # Errors
    /// A limit error for too many nodes.
    pub fn sample(
        classes: &Classes,
        class: &Class,
        complete: bool,
        sampler: &mut Sampler,
    ) -> Result<Self> {
        let mut made = Maker { classes, complete, sampler, object: Self::new() };
        made.object(Slot::Root, class, DEPTH)?;
        Ok(made.object)
    }
}

struct Maker<'c, 's> {
    classes: &'c Classes,
    complete: bool,
    sampler: &'s mut Sampler,
    object: Object,
}

impl<'c> Maker<'c, '_> {
    fn object(&mut self, slot: Slot<'c>, class: &'c Class, depth: u32) -> Result<()> {
        self.object.begin_object(slot, class, CoreId::default())?;
        let mut properties: Vec<&Property> = class.properties().iter().collect();
        if !self.complete && self.sampler.below(4) == 0 {
            properties.reverse();
        }
        for property in properties {
            let may_miss = !self.complete || property.has(Property::DELTA_ENCODE);
            if may_miss && self.sampler.below(3) == 0 {
                continue;
            }
            let slot = Slot::Property(property);
            if !property.is_list() {
                self.value(slot, property, depth)?;
                continue;
            }
            self.object.begin_list(slot)?;
            for _ in 0..self.sampler.below(4) {
                self.value(Slot::Element(property), property, depth)?;
            }
            self.object.end_list()?;
        }
        self.object.end_object()
    }

    fn value(&mut self, slot: Slot<'c>, property: &'c Property, depth: u32) -> Result<()> {
        let sampler = &mut *self.sampler;
        let whole = |sampler: &mut Sampler, bits: u32| sampler.number() >> (64 - bits);
        let signed = |sampler: &mut Sampler, bits: u32| {
            Leaf::Signed(sampler.number().cast_signed() >> (64 - bits))
        };
        let word = |sampler: &mut Sampler| u32::try_from(sampler.number() >> 32).unwrap_or(0);
        let bytes;
        let leaf = match property.kind() {
            PropertyKind::Bool => Leaf::Bool(sampler.below(2) == 0),
            PropertyKind::I8 => signed(sampler, 8),
            PropertyKind::I16 => signed(sampler, 16),
            PropertyKind::I32 => signed(sampler, 32),
            PropertyKind::I64 => signed(sampler, 64),
            PropertyKind::U8 => Leaf::Unsigned(whole(sampler, 8)),
            PropertyKind::U16 => Leaf::Unsigned(whole(sampler, 16)),
            PropertyKind::U32 => Leaf::Unsigned(whole(sampler, 32)),
            PropertyKind::U64 => Leaf::Unsigned(sampler.number()),
            PropertyKind::SignedBits(count) => signed(sampler, u32::from(count)),
            PropertyKind::UnsignedBits(count) => Leaf::Unsigned(whole(sampler, u32::from(count))),
            PropertyKind::F32 => Leaf::F32(f32::from_bits(word(sampler))),
            PropertyKind::F64 => Leaf::F64(f64::from_bits(sampler.number())),
            PropertyKind::String => {
                bytes = text(sampler).into_bytes();
                Leaf::Text(&bytes)
            }
            PropertyKind::WideString => {
                bytes = wide_bytes(&text(sampler));
                Leaf::WideText(&bytes)
            }
            PropertyKind::Tuple(tuple) => {
                bytes = group(tuple, sampler);
                Leaf::Tuple(tuple, &bytes)
            }
            PropertyKind::Enum => Leaf::Enum(choice(property, sampler)),
            PropertyKind::Flags => {
                Leaf::Flags(choice(property, sampler) | choice(property, sampler))
            }
            PropertyKind::Object => {
                let deeper = depth.checked_sub(1);
                let count = self.classes.all().len() as u64;
                let any = u32::try_from(sampler.below(count)).unwrap_or(0);
                let index = property.class().filter(|_| sampler.below(3) > 0).unwrap_or(any);
                return match (deeper, self.classes.get(index)) {
                    (Some(depth), Some(class)) if self.sampler.below(4) > 0 => {
                        self.object(slot, class, depth)
                    }
                    _ => self.object.value(slot, Leaf::Null),
                };
            }
        };
        self.object.value(slot, leaf)
    }
}

/// Usually short text, sometimes long enough for the long form of lengths.
fn text(sampler: &mut Sampler) -> String {
    let count = match sampler.below(8) {
        0 => 0,
        1 => 120 + sampler.below(20),
        _ => 1 + sampler.below(12),
    };
    let letters = ['a', 'Z', '0', '_', ' ', 'é', '€', '😀', '&', '<', '"', '\n'];
    let letter = |n: u64| letters.get(usize::try_from(n).unwrap_or(0)).copied().unwrap_or('x');
    (0..count).map(|_| letter(sampler.below(letters.len() as u64))).collect()
}

fn group(tuple: Tuple, sampler: &mut Sampler) -> Vec<u8> {
    let bytes = sampler.bytes(tuple.size());
    if tuple.part() != Part::F32 {
        return bytes;
    }
    // Mixes plausible numbers with arbitrary bits.
    let number = |chunk: &[u8]| match chunk {
        [first, second, ..] if *first < 200 => {
            (f32::from(*first) / 8.0 - f32::from(*second)).to_le_bytes().to_vec()
        }
        other => other.to_vec(),
    };
    bytes.chunks(4).flat_map(number).collect()
}

fn choice(property: &Property, sampler: &mut Sampler) -> u32 {
    let options = property.choices.as_ref().map(|choices| choices.names());
    let count = options.map_or(0, |names| names.iter().count()) as u64;
    if count == 0 || sampler.below(8) == 0 {
        return u32::try_from(sampler.number() >> 40).unwrap_or(0);
    }
    let nth = usize::try_from(sampler.below(count)).unwrap_or(0);
    let number = options.and_then(|names| names.iter().nth(nth)).map_or(0, |(number, _)| number);
    u32::try_from(number).unwrap_or(0)
}
