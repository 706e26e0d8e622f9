//! Enumerations whose variants have stable names, which programs may match on.

/// Declares such an enumeration: its variants with their names, [`ALL`](Self) of them, `name`, and
/// `Display`.
macro_rules! named {
    (
        $(#[$about:meta])*
        pub enum $type:ident {
            $($(#[$doc:meta])* $variant:ident = $name:literal,)*
        }
    ) => {
        $(#[$about])*
        pub enum $type {
            $(
                $(#[$doc])*
                #[doc = concat!("\n\nName: `", $name, "`.")]
                $variant,
            )*
        }

        impl $type {
            /// All of them.
            pub const ALL: [Self; [$($name),*].len()] = [$(Self::$variant),*];

            /// The stable name.
            #[inline]
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }
        }

        impl core::fmt::Display for $type {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                f.write_str(self.name())
            }
        }
    };
}

pub(crate) use named;
