//! Going through a message without keeping it: what the safety check and linting stand on.
//!
//! Every class of net messages and Plasma messages can be walked: the same list of fields that makes
//! its decoder makes its walk. A walk reads every field, reports to a
//! [`Guard`] what a server may object to, and builds no values, so it needs no memory.

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

/// What is told of a message while it is walked. Every method may refuse the message.
pub trait Guard {
    /// An object of this class follows: the payload itself, or one inside it.
    ///
    /// # Errors
    /// The reason to refuse it.
    fn class(&mut self, class: u16) -> Result<(), Reason>;

    /// A safe string.
    ///
    /// # Errors
    /// The reason to refuse it.
    fn text(&mut self, text: &SafeString<'_>) -> Result<(), Reason>;

    /// The name of an object; its text is not told by itself.
    ///
    /// # Errors
    /// The reason to refuse it.
    fn object(&mut self, uoid: &Uoid<'_>) -> Result<(), Reason>;

    /// The command of a `pfKIMsg`; 0 is chat.
    ///
    /// # Errors
    /// The reason to refuse it.
    fn ki_command(&mut self, command: u8) -> Result<(), Reason>;

    /// The console command of a `plControlEventMsg`.
    ///
    /// # Errors
    /// The reason to refuse it.
    fn console_command(&mut self, command: &CountedString<'_>) -> Result<(), Reason>;

    /// What inflates the stream block of a message.
    fn inflater(&mut self) -> &mut Inflater;
}

/// A field that can be walked.
pub trait Walk<'d>: Field<'d> {
    /// What conditions of later fields may ask of it.
    type Summary;

    /// Reads the field and reports to the guard.
    ///
    /// # Errors
    /// What the guard objects to, and what cannot be read.
    fn walk<G: Guard>(reader: &mut Reader<'d>, guard: &mut G) -> WalkResult<Self::Summary>;
}

/// A table of classes whose objects can be walked.
pub trait WalkClasses<'d>: Classes<'d> {
    /// Reads an object of this class, without the index. One of a class without a layout takes all
    /// that is left of the present part.
    ///
    /// # Errors
    /// What the guard objects to, and what cannot be read.
    fn walk_class<G: Guard>(class: u32, reader: &mut Reader<'d>, guard: &mut G) -> WalkResult;
}

/// Makes the walk of a record out of its fields, as [`record!`](worldwire_core::record) takes them.
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

            #[allow(unused_variables, reason = "only conditions ask for what was seen")]
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

/// [`record!`](worldwire_core::record), and the walk of it.
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

/// [`classes!`](worldwire_core::classes), and the walk of every class.
macro_rules! walked_classes {
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

pub(crate) use {walk_record, walked_classes, walked_record};
