//! Shows what the fields of a conversation's messages contain.

use worldwire_core::json::Json;
use worldwire_core::opener::{Closer, Opener, Site};
use worldwire_core::{Reader, Result, TreeBuilder};

use super::objects::KiObjects;
use super::secrets::Secrets;

/// Opens fields with login secrets and game objects.
#[derive(Clone, Debug)]
pub(crate) struct FieldOpener<'k> {
    pub(crate) secrets: Secrets<'k>,
    pub(crate) objects: &'k KiObjects,
}

impl<'n, 'k: 'n> Opener<'n> for FieldOpener<'k> {
    fn opens(&self, site: Site<'_>, bytes: &[u8]) -> bool {
        self.secrets.opens(site, bytes) || self.objects.opens(site, bytes)
    }

    fn open(&'n self, site: Site<'_>, reader: &mut Reader<'_, TreeBuilder<'n>>) -> Result<()> {
        match self.secrets.opened(site, reader.rest()) {
            Some(plain) => Secrets::show(plain, reader),
            None => self.objects.open(site, reader),
        }
    }
}

impl Closer for FieldOpener<'_> {
    fn close(&self, site: Site<'_>, json: &Json) -> Result<Option<Vec<u8>>> {
        self.objects.close(site, json)
    }
}
