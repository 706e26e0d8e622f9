//! Inspects every text, object and boolean of a message, wherever it is.

use worldwire_core::{Limits, Reader};

use super::Lint;
use super::content::shown;
use crate::inflate::Inflater;
use crate::net_message::NetMessage;
use crate::safety::Reason;
use crate::types::{LoadMask, LocationFlags, SafeForm, SafeString, Uoid};
use crate::walk::Guard;

/// The maximum number of remarks about the values in one message.
const MAX_REMARKS: usize = 8;

impl Lint {
    /// Reports values that no sender writes. Clients survive them, so they may be forwarded.
    pub(super) fn values(&mut self, message: &[u8], limits: &Limits) {
        for skip in 0..MAX_REMARKS {
            let mut guard = Odd { inflater: Inflater::new(), skip, found: None };
            let walked = NetMessage::walk(&mut Reader::within(message, limits), &mut guard);
            let (Err(refusal), Some(found)) = (walked, guard.found) else { return };
            let path = refusal.error().path_text();
            if !(self.has_bare_nulls && path.ends_with("brain.hasEndMsg")) {
                self.remark(format!("{path}: {found}"));
            }
        }
    }
}

/// A guard that stops at an irregular value, so that the refusal names the path to it.
struct Odd {
    inflater: Inflater,
    /// The number of irregular values to skip first.
    skip: usize,
    /// The problem with the value.
    found: Option<String>,
}

impl Odd {
    fn report_if(&mut self, odd: bool, remark: impl FnOnce() -> String) -> Result<(), Reason> {
        if !odd {
            return Ok(());
        }
        if self.skip > 0 {
            self.skip -= 1;
            return Ok(());
        }
        self.found = Some(remark());
        Err(Reason::Text)
    }
}

impl Guard for Odd {
    fn text(&mut self, text: &SafeString<'_>) -> Result<(), Reason> {
        // The safety check reports texts that crash clients.
        if text.crashes_client() {
            return Ok(());
        }
        self.report_if(text.is_misread(), || {
            let read_as = String::from_utf8_lossy(text.stored());
            format!("the first byte is 0x80 or higher; clients read {read_as:?}")
        })?;
        self.report_if(text.to_bytes().contains(&0), || "text with a NUL byte".to_owned())?;
        let usual = text.form() == SafeForm::Inverted || text.is_misread();
        self.report_if(!usual, || "text that is not encoded as clients encode it".to_owned())
    }

    fn boolean(&mut self, is_canonical: bool) -> Result<(), Reason> {
        self.report_if(!is_canonical, || "a boolean that is neither 0 nor 1".to_owned())
    }

    fn object(&mut self, uoid: &Uoid<'_>) -> Result<(), Reason> {
        self.text(&uoid.name)?;
        let number = uoid.location.sequence_number;
        // Both values stand for "no object".
        if number.0 == u32::MAX && matches!(uoid.class_index, 0 | 0x8000) {
            return Ok(());
        }
        let page = number.page();
        let local = matches!(number.0, 0..=0x20);
        self.report_if(page.is_none() && !local, || {
            format!("an object on page {}, which does not exist", shown(number))
        })?;
        let class = uoid.class_index;
        self.report_if(class >= 0x200, || {
            format!("an object of class 0x{class:04x}; the classes of objects are below 0x0200")
        })?;
        let flags = uoid.location.flags;
        let is_global = number.0 >= 0xff00_0000;
        self.report_if(flags.contains(LocationFlags::Reserved) != is_global, || {
            let with = if is_global { "without" } else { "with" };
            format!("page {} {with} the flag Reserved", shown(number))
        })?;
        let is_common = page.is_some_and(|(_, page)| page >= 0xfffe);
        self.report_if(flags.contains(LocationFlags::BuiltIn) != is_common, || {
            let with = if is_common { "without" } else { "with" };
            format!("page {} {with} the flag BuiltIn", shown(number))
        })?;
        let unused = flags.0 & !(0x10 | LocationFlags::Reserved.0 | LocationFlags::BuiltIn.0);
        self.report_if(unused != 0, || format!("unused page flags 0x{unused:x}"))?;
        self.report_if(uoid.load_mask == Some(LoadMask::ALWAYS), || {
            "a load mask that should be left out (0xff)".to_owned()
        })?;
        let Some(ids) = uoid.clone else { return Ok(()) };
        self.report_if(ids.id == 0, || "clone IDs with the number 0".to_owned())?;
        self.report_if(ids.player_id == 0, || "a clone that no player created".to_owned())?;
        let filler = ids.filler;
        self.report_if(filler != 0, || format!("{filler} in the reserved field of the clone IDs"))
    }

    fn inflater(&mut self) -> &mut Inflater {
        &mut self.inflater
    }
}
