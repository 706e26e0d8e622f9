//! Declares settings in one place: their documentation is also the comment above them in
//! `shard.toml`.

/// Declares the sections of a configuration with the defaults of their settings, and the template
/// of the file that the first start writes: see [`ServerConfig::TEMPLATE`]. Fields in the second
/// pair of braces are themselves sections.
///
/// [`ServerConfig::TEMPLATE`]: crate::config::ServerConfig::TEMPLATE
macro_rules! settings {
    (
        $TEMPLATE:ident = $head:literal;
        $(
            $(#[doc = $about:literal])*
            $([$name:ident])? pub struct $Section:ident {
                $(
                    $(#[doc = $doc:literal])*
                    $(#[serde($($serde:tt)*)])?
                    $field:ident: $Type:ty = $default:expr,
                )*
            } $({ $($(#[doc = $part_doc:literal])* $part:ident: $Part:ty,)* })?
        )*
    ) => {
        $(
            $(#[doc = $about])*
            #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
            #[serde(deny_unknown_fields, default)]
            pub struct $Section {
                $(
                    $(#[doc = $doc])*
                    $(#[serde($($serde)*)])?
                    pub $field: $Type,
                )*
                $($($(#[doc = $part_doc])* pub $part: $Part,)*)?
            }

            impl Default for $Section {
                fn default() -> Self {
                    Self { $($field: $default,)* $($($part: <$Part>::default(),)*)? }
                }
            }
        )*

        const $TEMPLATE: &str = concat!(
            $head,
            $(
                $("\n[", stringify!($name), "]\n",)?
                $($("#", $doc, "\n",)* stringify!($field), " =\n",)*
            )*
        );
    };
}
pub(super) use settings;
