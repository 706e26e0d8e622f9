//! Requests to the vault as values, which can be sent to the process whose vault answers them.
//!
//! Within one process, [`Vault::ask`](super::Vault) runs a request directly; nothing is encoded. To
//! another process, a request is sent as its [kind](Ask::KIND) and its [encoding](wire): the
//! receiver finds the type with [`for_kind`], decodes the request, runs it and encodes the reply.
//!
//! | kinds | requests | |
//! | --- | --- | --- |
//! | 1 to 99 | [`requests`](super::requests) | of clients, as methods of [`Connection`](super::Connection) |
//! | 100 to 119 | [`age_states`] | of ages |
//! | 120 to 129 | [`markers`] | of marker games |
//! | 130 to 139 | [`resume`] | of sessions that continue on another connection |
//!
//! Operators' requests are [`admin::Request`](crate::uru::admin::Request)s, which can also be sent.

#[cfg(feature = "fuzzing")]
pub(crate) mod fuzzing;
mod records;
#[cfg(test)]
mod tests;
mod wire;

use super::age_states;
use super::age_states::Owner;
use super::markers;
use super::requests;
use super::resume;
use super::session::{ConnectionId, Outcome};
use super::steps::VaultState;

pub(crate) use wire::{Wire, decoded, encoded, unknown, wire_struct, wire_variants};

/// A request.
pub(crate) trait Ask: Wire + Send + 'static {
    /// The reply.
    type Reply: Wire + Send + 'static;

    /// The number of this type of request. No other type has it, in any version.
    const KIND: u16;

    /// The node whose content the request needs, if any.
    fn needs(&self) -> Option<u32> {
        None
    }

    /// The placement of the age that makes the request, if an age does.
    fn owner(&self) -> Option<Owner> {
        None
    }

    /// Runs the request on behalf of a session, or of [none](ConnectionId::NONE). It runs again if
    /// the vault must first load contents.
    fn run(&self, state: &mut VaultState, connection: ConnectionId) -> Outcome<Self::Reply>;
}

/// Declares requests: structs that implement [`Ask`].
///
/// ```text
/// /// Finds a player.
/// 7 Find { name: String } -> Option<u32>;
///     |state, id| Ok(state.players().named(name))
/// ```
///
/// The body has references to the fields. `needs field` after the reply names the field with the
/// node whose content is needed, and `owned by field` the one with the placement of the age that
/// makes the request.
macro_rules! asks {
    ($(
        $(#[doc = $doc:expr])*
        $kind:literal $name:ident { $($field:ident: $type:ty),* $(,)? } -> $reply:ty
            $(, needs $needs:ident)? $(, owned by $owner:ident)?;
            |$state:ident, $id:ident| $body:expr
    )*) => {$(
        $(#[doc = $doc])*
        #[derive(PartialEq)]
        pub(crate) struct $name {
            $($field: $type),*
        }

        /// Leaves out the fields, because they may be secret.
        impl ::std::fmt::Debug for $name {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                f.debug_struct(stringify!($name)).finish_non_exhaustive()
            }
        }

        $crate::uru::vault::ask::wire_struct! { $name { $($field: $type),* } }

        impl $crate::uru::vault::ask::Ask for $name {
            type Reply = $reply;
            const KIND: u16 = $kind;

            $(
                fn needs(&self) -> Option<u32> {
                    Some(self.$needs)
                }
            )?

            $(
                fn owner(&self) -> Option<$crate::uru::vault::age_states::Owner> {
                    Some(self.$owner)
                }
            )?

            fn run(
                &self,
                $state: &mut $crate::uru::vault::steps::VaultState,
                $id: $crate::uru::vault::ConnectionId,
            ) -> $crate::uru::vault::session::Outcome<$reply> {
                let Self { $($field),* } = self;
                $body
            }
        }
    )*};
}
pub(crate) use asks;

/// An action for a type of request that is known only by its number.
pub(crate) trait ForKind {
    /// The result.
    type Output;

    /// Handles the type of request.
    fn run<A: Ask>(self) -> Self::Output;
}

/// Declares the table of all requests.
macro_rules! kinds {
    ($($name:path),* $(,)?) => {
        /// Runs `then` for the type of request with this number. Returns `None` if there is no such
        /// type.
        pub(crate) fn for_kind<F: ForKind>(kind: u16, then: F) -> Option<F::Output> {
            match kind {
                $(<$name as Ask>::KIND => Some(then.run::<$name>()),)*
                _ => None,
            }
        }

        /// The numbers of all types of requests.
        #[cfg(any(test, feature = "fuzzing"))]
        pub(crate) const KINDS: &[u16] = &[$(<$name as Ask>::KIND),*];
    };
}

kinds! {
    requests::LogIn,
    requests::ChangePassword,
    requests::SetPlayer,
    requests::CreatePlayer,
    requests::DeletePlayer,
    requests::KickPlayer,
    requests::CreateNode,
    requests::FetchNode,
    requests::SaveNode,
    requests::AddRef,
    requests::RemoveRef,
    requests::ReadRefs,
    requests::FindNodes,
    requests::SendNode,
    requests::MakeAge,
    requests::RequestAge,
    requests::LeaveAge,
    requests::ListPublicAges,
    requests::SetPublic,
    requests::CreateScore,
    requests::GetScores,
    requests::AddPoints,
    requests::TransferPoints,
    requests::SetPoints,
    requests::HighScores,
    age_states::Watch,
    age_states::ReadNodes,
    age_states::ReadState,
    age_states::ReadSettings,
    age_states::SaveState,
    age_states::SaveObjects,
    age_states::FindPlayer,
    age_states::RecordLeft,
    markers::CarryOut,
    markers::NameGames,
    markers::CleanUp,
    markers::KeepGames,
    resume::KeepTicket,
    resume::Resume,
    resume::Identify,
}
