//! Enumerations whose values people write by name: on a command line, in a specification of factors, in a file. Each
//! name is written once, in [`NamedValue::NAMED`].

use alloc::string::String;
use alloc::vec::Vec;

/// An enumeration whose values have names.
pub trait NamedValue: Copy + PartialEq + 'static {
    /// Every value with its name and a description; the description is empty where the name says enough.
    const NAMED: &'static [(Self, &'static str, &'static str)];

    /// The name of a value; empty when `NAMED` does not list it.
    fn name(self) -> &'static str {
        let is_it = |(value, ..): &&(Self, &'static str, &'static str)| *value == self;
        Self::NAMED
            .iter()
            .find(is_it)
            .map_or("", |(_, name, _)| name)
    }

    /// The value that has this name.
    fn named(name: &str) -> Option<Self> {
        let has_it = |(_, known, _): &&(Self, &'static str, &'static str)| *known == name;
        Self::NAMED.iter().find(has_it).map(|(value, ..)| *value)
    }

    /// All names, with commas between them.
    fn names() -> String {
        let names: Vec<&str> = Self::NAMED.iter().map(|(_, name, _)| *name).collect();
        names.join(", ")
    }
}

/// Serializes a value as its name, for `#[serde(with = "by_name")]`.
pub mod by_name {
    use super::{NamedValue, UnknownName};
    use alloc::string::String;
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    /// Writes the name of a value.
    ///
    /// # Errors
    /// Those of the writer.
    pub fn serialize<V: NamedValue, S: Serializer>(
        value: &V,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(value.name())
    }

    /// Reads a value from its name.
    ///
    /// # Errors
    /// Those of the reader, and an [`UnknownName`] when no value has the name.
    pub fn deserialize<'d, V: NamedValue, D: Deserializer<'d>>(
        deserializer: D,
    ) -> Result<V, D::Error> {
        let name = String::deserialize(deserializer)?;
        V::named(&name).ok_or_else(|| D::Error::custom(UnknownName(V::names())))
    }
}

/// The error that no value has a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownName(
    /// The names that exist, separated by commas.
    pub String,
);

impl core::fmt::Display for UnknownName {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "the choices are {}", self.0)
    }
}

impl core::error::Error for UnknownName {}

/// Implements [`NamedValue`](crate::named::NamedValue), `Display` and `FromStr` for an enumeration:
/// `named_values!(Scale, Additive = "additive", "Differences"; Multiplicative = "multiplicative", "Ratios");`
#[macro_export]
macro_rules! named_values {
    ($type:ty, $($variant:ident = $name:literal $(, $words:literal)?);+ $(;)?) => {
        impl $crate::named::NamedValue for $type {
            const NAMED: &'static [(Self, &'static str, &'static str)] =
                &[$((Self::$variant, $name, concat!("" $(, $words)?))),+];
        }

        impl core::fmt::Display for $type {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                f.pad($crate::named::NamedValue::name(*self))
            }
        }

        impl core::str::FromStr for $type {
            type Err = $crate::named::UnknownName;

            fn from_str(name: &str) -> Result<Self, Self::Err> {
                <Self as $crate::named::NamedValue>::named(name)
                    .ok_or_else(|| $crate::named::UnknownName(<Self as $crate::named::NamedValue>::names()))
            }
        }
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Copy, Debug, PartialEq)]
    enum Colour {
        Red,
        DarkGreen,
    }

    crate::named_values!(Colour, Red = "red"; DarkGreen = "dark-green", "as of leaves");

    #[test]
    fn every_value_is_written_and_read_by_its_name() {
        for (value, name, _) in Colour::NAMED {
            assert_eq!(
                (alloc::format!("{value}"), name.parse()),
                (String::from(*name), Ok(*value))
            );
        }
        assert_eq!(Colour::NAMED[1].2, "as of leaves");
        let unknown = "blue".parse::<Colour>().unwrap_err();
        assert_eq!(
            alloc::format!("{unknown}"),
            "the choices are red, dark-green"
        );
    }
}
