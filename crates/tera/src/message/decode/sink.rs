//! Who learns what the decoder finds.

use crate::types::Scalar;

/// Who learns what a message holds.
pub(crate) trait Sink<'d, 'n> {
    /// Whether nobody learns anything.
    const SILENT: bool = false;

    /// A value of fixed size; `data` begins with it. Gives `None` when `data` is too short.
    fn scalar(&mut self, name: &'n str, scalar: Scalar, data: &'d [u8], at: usize) -> Option<()>;
    /// A text, without its terminator.
    fn text(&mut self, name: &'n str, text: &'d [u8], at: usize);
    /// Bytes.
    fn bytes(&mut self, name: &'n str, bytes: &'d [u8], at: usize);
    /// A list of so many elements, which `fill` finds; it also says where the list ends.
    fn list<R>(
        &mut self,
        name: &'n str,
        count: usize,
        at: usize,
        fill: impl FnOnce(&mut Self) -> (R, usize),
    ) -> R;
    /// A record of so many fields, which `fill` finds; it also says where the record ends.
    fn record<R>(
        &mut self,
        name: &'n str,
        fields: usize,
        at: usize,
        fill: impl FnOnce(&mut Self) -> (R, usize),
    ) -> R;
}

/// Nobody learns anything.
pub(crate) struct Silent;

impl<'d, 'n> Sink<'d, 'n> for Silent {
    const SILENT: bool = true;

    #[inline(always)]
    fn scalar(&mut self, _: &'n str, scalar: Scalar, data: &'d [u8], _: usize) -> Option<()> {
        (data.len() >= scalar.size()).then_some(())
    }
    #[inline(always)]
    fn text(&mut self, _: &'n str, _: &'d [u8], _: usize) {}
    #[inline(always)]
    fn bytes(&mut self, _: &'n str, _: &'d [u8], _: usize) {}
    #[inline(always)]
    fn list<R>(
        &mut self,
        _: &'n str,
        _: usize,
        _: usize,
        fill: impl FnOnce(&mut Self) -> (R, usize),
    ) -> R {
        fill(self).0
    }
    #[inline(always)]
    fn record<R>(
        &mut self,
        _: &'n str,
        _: usize,
        _: usize,
        fill: impl FnOnce(&mut Self) -> (R, usize),
    ) -> R {
        fill(self).0
    }
}
