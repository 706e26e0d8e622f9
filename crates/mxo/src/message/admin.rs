//! The other operations of the AdminView: deletes, and updates of views whose create the client may
//! not have yet.
//!
//! ```text
//! 01 00 | 01 n:u16 viewId:u16 * n
//! 01 00 | 02 length:u16 viewId:u16 data[length - 4]
//! ```
//!
//! Trees and JSON show the data of a pending update as an `update` if the class of its view is
//! known.

use std::borrow::Cow;

use worldwire_core::json::{self, FieldsOf, Given};
use worldwire_core::{Error, Reader, Result, Side, Trace, Writer};

use super::fault::Fault;
use super::update::Update;
use super::views::{ADMIN_VIEW, Context, Viewed};
use crate::schema::Objects;

/// The values of the flags' two lowest bits.
pub(super) const CREATE: u8 = 0;
pub(super) const DELETE: u8 = 1;
pub(super) const PENDING: u8 = 2;
/// The mask of these two bits.
pub(super) const COMMAND: u8 = 3;

/// The deletion of views. Sent by servers only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delete {
    /// The flags: `01`. The upper bits are unknown.
    pub flags: u8,
    /// The view IDs, each 2 or more. Clients ignore unknown ones.
    pub views: Vec<u16>,
}

impl Delete {
    /// A deletion of these views.
    #[must_use]
    pub fn of(views: Vec<u16>) -> Self {
        Self { flags: DELETE, views }
    }

    pub(super) fn decode<'n, T: Trace<'n>>(reader: &mut Reader<'_, T>, flags: u8) -> Result<Self> {
        let count = usize::from(reader.u16("count")?);
        if reader.remaining() / 2 < count {
            let error = Error::incomplete(count * 2, reader.remaining());
            return Err(reader.place_error(error).inside("views"));
        }
        let mut views = Vec::with_capacity(count);
        reader.list("views", |reader| {
            for index in 0..count {
                let view = reader.item(index, |reader| {
                    let view = reader.u16("")?;
                    if view <= ADMIN_VIEW {
                        return Err(Fault::BadViewId.at(reader, 2, view.to_string()));
                    }
                    Ok(view)
                })?;
                views.push(view);
            }
            Ok(())
        })?;
        Ok(Self { flags, views })
    }

    /// Writes the AdminView's view ID and the deletion.
    ///
    /// # Errors
    /// A value error for other flags, the view IDs 0 and 1, and more than 65,535 views.
    pub fn encode(&self, writer: &mut Writer) -> Result<()> {
        let count = u16::try_from(self.views.len()).map_err(|_| {
            let found = self.views.len().to_string();
            Error::value("at most 65535 views", found).inside("views")
        })?;
        head(self.flags, DELETE, writer)?;
        writer.u16(count);
        for (index, view) in self.views.iter().enumerate() {
            if *view <= ADMIN_VIEW {
                let error = Fault::BadViewId.value(view.to_string());
                return Err(error.inside_item(index).inside("views"));
            }
            writer.u16(*view);
        }
        Ok(())
    }

    /// The number of bytes that [`Self::encode`] writes.
    #[must_use]
    pub fn encoded_len(&self) -> usize {
        5 + 2 * self.views.len()
    }

    pub(super) fn from_json(json: Given<'_>) -> Result<Self> {
        let mut fields = FieldsOf::new(json)?;
        super::agrees("view", fields.take_optional("view"), ADMIN_VIEW.into())?;
        let flags = super::optional(&mut fields, "flags")?.unwrap_or(DELETE);
        let count = fields.take_optional("count");
        let views: Vec<u16> = worldwire_core::list_from_json(fields.given("views")?)
            .map_err(|error| error.inside("views"))?;
        fields.end()?;
        super::agrees("count", count, views.len() as u64)?;
        Ok(Self { flags, views })
    }
}

/// An update of a view whose create may not have arrived; the client keeps the update until then.
/// Sent by servers only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PendingUpdate<'d> {
    /// The flags: `02`. The upper bits are unknown.
    pub flags: u8,
    /// The view ID: 2 or more.
    pub target: u16,
    /// Mask and blocks, which [`Update::decode_body`] reads once the class of the view is known. At
    /// most 65,531 bytes.
    pub data: Cow<'d, [u8]>,
}

/// The size of the length and the view ID, which the length includes.
const HEAD: usize = 4;

impl<'d> PendingUpdate<'d> {
    /// A pending update that contains this update.
    pub fn wrap(update: &Update<'_>, objects: &Objects) -> Result<PendingUpdate<'static>> {
        let mut writer = Writer::new();
        update.encode_body(objects, Side::Server, &mut writer)?;
        let data = Cow::Owned(writer.into_bytes());
        Ok(PendingUpdate { flags: PENDING, target: update.view, data })
    }

    /// Converts to an owned value.
    #[must_use]
    pub fn into_owned(self) -> PendingUpdate<'static> {
        let data = Cow::Owned(self.data.into_owned());
        PendingUpdate { flags: self.flags, target: self.target, data }
    }

    pub(super) fn decode<'n, T: Trace<'n>>(
        reader: &mut Reader<'d, T>,
        flags: u8,
        context: &Context<'n, '_>,
        viewed: impl Fn(u16) -> Option<Viewed>,
    ) -> Result<Self> {
        let length = usize::from(reader.u16("length")?);
        if length < HEAD {
            let error = Fault::BadPendingLength.at(reader, 2, length.to_string());
            return Err(error.inside("length"));
        }
        let target = reader.u16("target")?;
        if target <= ADMIN_VIEW {
            let error = Fault::BadViewId.at(reader, 2, target.to_string());
            return Err(error.inside("target"));
        }
        let length = length - HEAD;
        if T::ON
            && let Some(viewed) = viewed(target)
            && let Some(data) = reader.rest().get(..length)
        {
            // Only for display: the length alone determines what is consumed.
            let shown = reader.attempt(|reader| {
                reader.record("update", |reader| {
                    reader.part(length, |reader| {
                        let (objects, from) = (context.objects, context.from);
                        Update::decode_body(reader, target, viewed, objects, from)
                    })
                })
            });
            if shown.is_ok() {
                return Ok(Self { flags, target, data: Cow::Borrowed(data) });
            }
        }
        let data = Cow::Borrowed(reader.bytes("data", length)?);
        Ok(Self { flags, target, data })
    }

    /// Writes the AdminView's view ID and the update with its length.
    ///
    /// # Errors
    /// A value error for other flags, the view IDs 0 and 1, and more data than the length can
    /// express.
    pub fn encode(&self, writer: &mut Writer) -> Result<()> {
        let length = u16::try_from(HEAD + self.data.len()).map_err(|_| {
            Error::value("at most 65531 bytes", self.data.len().to_string()).inside("data")
        })?;
        if self.target <= ADMIN_VIEW {
            return Err(Fault::BadViewId.value(self.target.to_string()).inside("target"));
        }
        head(self.flags, PENDING, writer)?;
        writer.u16(length);
        writer.u16(self.target);
        writer.bytes(&self.data);
        Ok(())
    }

    /// The number of bytes that [`Self::encode`] writes.
    #[must_use]
    pub fn encoded_len(&self) -> usize {
        3 + HEAD + self.data.len()
    }

    pub(super) fn from_json(
        json: Given<'_>,
        context: &Context<'_, '_>,
        viewed: impl Fn(u16) -> Option<Viewed>,
    ) -> Result<PendingUpdate<'static>> {
        let mut fields = FieldsOf::new(json)?;
        super::agrees("view", fields.take_optional("view"), ADMIN_VIEW.into())?;
        let flags = super::optional(&mut fields, "flags")?.unwrap_or(PENDING);
        let length = fields.take_optional("length");
        let target: u16 = fields.value("target")?;
        let data = match fields.given_optional("update") {
            Some(update) => {
                let mut writer = Writer::new();
                Update::body_from_json(FieldsOf::new(update)?, target, viewed(target), context)
                    .and_then(|update| {
                        update.encode_body(context.objects, context.from, &mut writer)
                    })
                    .map_err(|error| error.inside("update"))?;
                let made = writer.into_bytes();
                if let Some(data) = fields.take_optional("data") {
                    let given = json::bytes(data).map_err(|error| error.inside("data"))?;
                    if given != made {
                        let wanted = "the bytes of the update";
                        let error =
                            Error::value(wanted, format!("{} different bytes", given.len()));
                        return Err(error.inside("data").hint("omit `data` or `update`"));
                    }
                }
                made
            }
            None => {
                let data = fields.take("data")?;
                json::bytes(data).map_err(|error| error.inside("data"))?
            }
        };
        fields.end()?;
        super::agrees("length", length, (HEAD + data.len()) as u64)?;
        Ok(PendingUpdate { flags, target, data: Cow::Owned(data) })
    }
}

/// Writes the AdminView's ID and the flags, if the flags match the command.
fn head(flags: u8, command: u8, writer: &mut Writer) -> Result<()> {
    if flags & COMMAND != command {
        let wanted = format!("flags whose lowest two bits are {command}");
        return Err(Error::value(wanted, format!("{flags:#04x}")).inside("flags"));
    }
    writer.u16(ADMIN_VIEW);
    writer.u8(flags);
    Ok(())
}
