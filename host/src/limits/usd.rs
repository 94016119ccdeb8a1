//! An amount of US dollars that a limit may be.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Millionths of a dollar in a dollar.
const MICRO: f64 = 1_000_000.0;

/// US dollars, kept as millionths; in files and on the wire a number of dollars, null where there is no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Usd(u64);

impl Usd {
    /// No limit.
    pub const UNCAPPED: Self = Self(u64::MAX);

    /// An amount in dollars, rounded up to a millionth. None where it is negative or no number.
    #[must_use]
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "it is checked, and `as` keeps to the bounds"
    )]
    pub fn new(dollars: f64) -> Option<Self> {
        (dollars >= 0.0 && dollars.is_finite()).then(|| Self((dollars * MICRO).ceil() as u64))
    }

    /// Millionths of a dollar.
    #[must_use]
    pub fn micros(self) -> u64 {
        self.0
    }

    /// Dollars.
    #[must_use]
    pub fn dollars(self) -> f64 {
        self.0 as f64 / MICRO
    }
}

impl From<Usd> for u64 {
    fn from(amount: Usd) -> Self {
        amount.0
    }
}

impl Serialize for Usd {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        (*self != Self::UNCAPPED).then(|| self.dollars()).serialize(to)
    }
}

impl<'de> Deserialize<'de> for Usd {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        match Option::<f64>::deserialize(from)? {
            None => Ok(Self::UNCAPPED),
            Some(dollars) => {
                Self::new(dollars).ok_or_else(|| serde::de::Error::custom(format!("{dollars} is no amount of dollars")))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Usd;

    #[test]
    fn dollars_are_kept_to_a_millionth() {
        let check = |json: &str, micros: Option<u64>| {
            let read = serde_json::from_str::<Usd>(json).ok();
            assert_eq!(read.map(Usd::micros), micros, "{json}");
            if let Some(read) = read {
                let again = serde_json::to_string(&read).expect("JSON");
                assert_eq!(serde_json::from_str::<Usd>(&again).ok(), Some(read), "{json} as {again}");
            }
        };
        check("2.5", Some(2_500_000));
        check("3", Some(3_000_000));
        check("0.0000001", Some(1));
        check("0", Some(0));
        check("null", Some(u64::MAX));
        check("-1", None);
        check("\"2\"", None);
    }
}
