//! Characters that enter the world, and the properties of their objects.

use worldwire_mxo::message::Properties;
use worldwire_mxo::replicator::Point;
use worldwire_mxo::schema::Class;
use worldwire_mxo::types::Value;

use super::realm::Entrant;

/// The appearance of every character: a man in plain clothes.
///
/// Unverified: how its bits encode the items that players choose. No table is known.
const RSI: [u8; 15] =
    [0x00, 0x0c, 0x71, 0x48, 0x18, 0x0c, 0xe2, 0x00, 0x23, 0x00, 0xb0, 0x00, 0x40, 0x00, 0x00];
/// The health and inner strength of every character.
const HEALTH: u32 = 100;
const INNER_STRENGTH: u32 = 100;

/// A character that enters the world.
#[derive(Clone, Debug)]
pub(super) struct Newcomer {
    /// The character's name in the game.
    pub(super) handle: String,
    /// The position at which the character appears, and its direction; `None` for the scene's
    /// start.
    pub(super) place: Option<(Point, u8)>,
    /// Whether the character keeps its position if it is already in the world.
    pub(super) stays: bool,
    /// Properties by name. Those that a class does not have are ignored.
    values: Vec<(&'static str, Value<'static>)>,
}

impl Newcomer {
    /// A character in an open world, which has only a number.
    pub(super) fn visitor(uid: u64) -> Self {
        let (first, last) = ("Visitor".to_owned(), uid.to_string());
        let values =
            vec![("RealFirstName", Value::Text(first)), ("RealLastName", Value::Text(last))];
        Self { handle: uid.to_string(), place: None, stays: false, values }
    }

    /// A player's character. It reappears where it left the world if that was in the same district.
    pub(super) fn player(character: u32, entrant: &Entrant, district: u32) -> Self {
        let text = |text: &str| Value::Text(text.to_owned());
        let number = |number: u32| Value::Unsigned(number);
        let values = vec![
            ("RealFirstName", text(&entrant.first_name)),
            ("RealLastName", text(&entrant.last_name)),
            ("CharacterName", text(&entrant.handle)),
            ("CharacterID", number(character)),
            ("Level", number(entrant.level.into())),
            ("MaxHealth", number(HEALTH)),
            ("Health", number(HEALTH)),
            ("InnerStrengthMax", number(INNER_STRENGTH)),
            ("InnerStrengthAvailable", number(INNER_STRENGTH)),
            ("RSIDescription", Value::Bytes(RSI.to_vec().into())),
            ("YawInterval", number(0)),
            ("Stance", Value::Bytes(vec![0].into())),
            ("OrganizationID", Value::Bytes(vec![0].into())),
        ];
        let place = entrant.place.filter(|place| place.district == district);
        let place = place.map(|place| (place.position, place.yaw));
        Self { handle: entrant.handle.clone(), place, stays: true, values }
    }

    /// The properties for an object of this class.
    pub(super) fn properties(&self, class: &Class) -> Properties<'static> {
        let mut properties = Properties::new();
        for (name, value) in &self.values {
            let slot = class.create().index_of(name).and_then(|index| {
                let kind = class.create().slot(index)?.kind();
                Some((u16::try_from(index).ok()?, kind))
            });
            if let Some((index, kind)) = slot
                && let Ok(bytes) = kind.write(value)
            {
                properties.set(index, bytes);
            }
        }
        properties
    }
}
