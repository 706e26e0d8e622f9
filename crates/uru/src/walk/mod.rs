//! Walking a message without keeping it: the basis of the safety check and of linting.
//!
//! Every class of net messages and Plasma messages can be walked; the field list that defines its
//! decoder also defines its walk. A walk reads every field and passes a [`Guard`] everything that a
//! server may object to. It builds no values, so it allocates nothing.

mod field;
mod refusal;

use worldwire_core::{Classes, Field, Reader};

pub use field::LowBits;
pub(crate) use field::walk_plain;
pub use refusal::{Reason, Refusal};

use crate::inflate::Inflater;
use crate::types::{CountedString, SafeString, Uoid};

/// The outcome of a walk.
pub type WalkResult<S = ()> = Result<S, Refusal>;

/// Inspects a message while it is walked. Every method may refuse the message.
pub trait Guard {
    /// An object of this class follows: the payload itself, or an object inside it.
    fn class(&mut self, _: u16) -> Result<(), Reason> {
        Ok(())
    }

    /// A safe string.
    fn text(&mut self, _: &SafeString<'_>) -> Result<(), Reason> {
        Ok(())
    }

    /// A boolean, or the first byte of a key: whether it is 0 or 1, as all known senders write it.
    fn boolean(&mut self, _: bool) -> Result<(), Reason> {
        Ok(())
    }

    /// A uoid; its name is not reported to [`Self::text`].
    fn object(&mut self, _: &Uoid<'_>) -> Result<(), Reason> {
        Ok(())
    }

    /// The command of a `pfKIMsg`; 0 is chat.
    fn ki_command(&mut self, _: u8) -> Result<(), Reason> {
        Ok(())
    }

    /// The console command of a `plControlEventMsg`.
    fn console_command(&mut self, _: &CountedString<'_>) -> Result<(), Reason> {
        Ok(())
    }

    /// The inflater for the message's stream blocks.
    fn inflater(&mut self) -> &mut Inflater;
}

/// A field that can be walked.
pub trait Walk<'d>: Field<'d> {
    /// The part of the field's value that conditions of later fields may test.
    type Summary;

    /// Reads the field and reports its contents to the guard.
    fn walk<G: Guard>(reader: &mut Reader<'d>, guard: &mut G) -> WalkResult<Self::Summary>;
}

/// A table of classes whose objects can be walked.
pub trait WalkClasses<'d>: Classes<'d> {
    /// Reads an object of this class, without its index. An object without a known layout extends
    /// to the end of the enclosing part.
    fn walk_class<G: Guard>(class: u32, reader: &mut Reader<'d>, guard: &mut G) -> WalkResult;
}

/// Generates the walk of a record from its fields, as [`record!`](worldwire_core::record) takes
/// them.
macro_rules! walk_record {
    ($name:ident [] { $($fields:tt)* }) => {
        $crate::walk::walk_record! { @impl ['d_] [$name] { $($fields)* } }
    };
    ($name:ident [$lt:lifetime] { $($fields:tt)* }) => {
        $crate::walk::walk_record! { @impl [$lt] [$name<$lt>] { $($fields)* } }
    };
    (@impl [$d:lifetime] [$self:ty] {
        $(..$base:ident: $base_type:ty,)?
        $(
            $(#[doc = $doc:expr])*
            $field:ident $wire:literal: $type:ty $(where $condition:expr)?,
        )*
    }) => {
        impl<$d> $crate::walk::Walk<$d> for $self {
            type Summary = ();

            #[allow(unused_variables, reason = "only conditions use earlier fields")]
            fn walk<G: $crate::walk::Guard>(
                reader: &mut ::worldwire_core::Reader<$d>,
                guard: &mut G,
            ) -> $crate::walk::WalkResult {
                $(<$base_type as $crate::walk::Walk<$d>>::walk(reader, guard)?;)?
                $(
                    let $field = $crate::walk::walk_record!(
                        @field reader guard $wire [$d $type] $($condition)?
                    );
                )*
                Ok(())
            }
        }
    };
    (@field $reader:ident $guard:ident $wire:literal [$d:lifetime $type:ty]) => {
        <$type as $crate::walk::Walk<$d>>::walk($reader, $guard)
            .map_err(|refusal| refusal.inside($wire))?
    };
    (@field $reader:ident $guard:ident $wire:literal [$d:lifetime $type:ty] $condition:expr) => {
        if $condition {
            Some($crate::walk::walk_record!(@field $reader $guard $wire [$d $type]))
        } else {
            None
        }
    };
}

/// [`record!`](worldwire_core::record) with a walk.
macro_rules! walked_record {
    (
        $(#[doc = $doc:expr])*
        pub struct $name:ident $(<$lt:lifetime>)? { $($fields:tt)* }
    ) => {
        ::worldwire_core::record! {
            $(#[doc = $doc])*
            pub struct $name $(<$lt>)? { $($fields)* }
        }
        $crate::walk::walk_record! { $name [$($lt)?] { $($fields)* } }
    };
}

/// Finds the header of a record: the record that precedes its fields, or the header of that record
/// in turn.
macro_rules! header_of {
    ($head:ty, $name:ident [$($lt:lifetime)?] { ..$base:ident: $type:ty, $($fields:tt)* }) => {
        impl $(<$lt>)? AsRef<$head> for $name $(<$lt>)? {
            fn as_ref(&self) -> &$head {
                self.$base.as_ref()
            }
        }
    };
}

/// [`classes!`](worldwire_core::classes) with a walk for every class. All classes of an enum can
/// begin with the same header.
macro_rules! walked_classes {
    (
        $(#[doc = $doc:expr])*
        pub enum $enum:ident<$a:lifetime>: $index:ident, header $head:ty;
        $(named { $($named:tt)* })?
        $(
            $(#[doc = $cdoc:expr])*
            $class:literal $name:ident $(<$lt:lifetime>)? $wire:literal in $parent:literal
            { $($fields:tt)* }
        )*
    ) => {
        $crate::walk::walked_classes! {
            $(#[doc = $doc])*
            pub enum $enum<$a>: $index;
            $(named { $($named)* })?
            $(
                $(#[doc = $cdoc])*
                $class $name $(<$lt>)? $wire in $parent { $($fields)* }
            )*
        }
        $($crate::walk::header_of! { $head, $name [$($lt)?] { $($fields)* } })*

        impl<$a> AsRef<Self> for $head {
            fn as_ref(&self) -> &Self {
                self
            }
        }

        impl<$a> $enum<$a> {
            /// The header of the message; `None` for a class without a known layout.
            #[must_use]
            pub fn header(&self) -> Option<&$head> {
                match self {
                    $(Self::$name(message) => Some(message.as_ref()),)*
                    Self::Other(_) => None,
                }
            }
        }
    };
    (
        $(#[doc = $doc:expr])*
        pub enum $enum:ident<$a:lifetime>: $index:ident;
        $(named { $($named:tt)* })?
        $(
            $(#[doc = $cdoc:expr])*
            $class:literal $name:ident $(<$lt:lifetime>)? $wire:literal in $parent:literal
            { $($fields:tt)* }
        )*
    ) => {
        ::worldwire_core::classes! {
            $(#[doc = $doc])*
            pub enum $enum<$a>: $index;
            $(named { $($named)* })?
            $(
                $(#[doc = $cdoc])*
                $class $name $(<$lt>)? $wire in $parent { $($fields)* }
            )*
        }
        $($crate::walk::walk_record! { $name [$($lt)?] { $($fields)* } })*

        impl<$a> $crate::walk::WalkClasses<$a> for $enum<$a> {
            fn walk_class<G: $crate::walk::Guard>(
                class: u32,
                reader: &mut ::worldwire_core::Reader<$a>,
                guard: &mut G,
            ) -> $crate::walk::WalkResult {
                match class {
                    $($class => {
                        <$name $(<$lt>)? as $crate::walk::Walk<$a>>::walk(reader, guard)
                    })*
                    _ => {
                        let left = reader.remaining();
                        reader.take(left)?;
                        Ok(())
                    }
                }
            }
        }
    };
}

pub(crate) use {header_of, walk_record, walked_classes, walked_record};
