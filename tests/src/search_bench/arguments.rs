//! The arguments of the program: flags, flags with a value, and the rest.

/// What is not taken yet.
pub struct Arguments(Vec<String>);

impl Arguments {
    /// All of them.
    #[must_use]
    pub fn new(all: Vec<String>) -> Self {
        Self(all)
    }

    /// Takes a flag; whether it was there.
    pub fn flag(&mut self, name: &str) -> bool {
        let before = self.0.len();
        self.0.retain(|one| one != name);
        self.0.len() < before
    }

    /// Takes a flag with its value.
    ///
    /// # Errors
    /// In words: the value is missing.
    pub fn value(&mut self, name: &str) -> Result<Option<String>, String> {
        let Some(at) = self.0.iter().position(|one| one == name) else { return Ok(None) };
        self.0.remove(at);
        if at == self.0.len() || self.0[at].starts_with("--") {
            return Err(format!("{name} needs a value"));
        }
        Ok(Some(self.0.remove(at)))
    }

    /// Takes a flag with a number.
    ///
    /// # Errors
    /// In words: the value is missing or no number.
    pub fn number(&mut self, name: &str) -> Result<Option<u64>, String> {
        let number = |text: String| text.parse().map_err(|_| format!("{name} takes a whole number, not `{text}`"));
        self.value(name)?.map(number).transpose()
    }

    /// All that is left, none of it a flag.
    ///
    /// # Errors
    /// In words: a flag that is not known.
    pub fn rest(self) -> Result<Vec<String>, String> {
        match self.0.iter().find(|one| one.starts_with("--")) {
            Some(unknown) => Err(format!("`{unknown}` is not known here")),
            None => Ok(self.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_values_and_the_rest() {
        let new = |text: &str| Arguments::new(text.split_whitespace().map(str::to_owned).collect());
        let mut found = new("10 --seed 3 --json 20");
        assert_eq!((found.flag("--json"), found.flag("--json")), (true, false));
        assert_eq!((found.number("--seed"), found.value("--out")), (Ok(Some(3)), Ok(None)));
        assert_eq!(found.rest(), Ok(vec!["10".to_owned(), "20".to_owned()]));
        assert_eq!(new("--seed").number("--seed"), Err("--seed needs a value".to_owned()));
        assert_eq!(new("--seed --json").number("--seed"), Err("--seed needs a value".to_owned()));
        assert_eq!(new("--seed x").number("--seed"), Err("--seed takes a whole number, not `x`".to_owned()));
        assert_eq!(new("1 --sed 2").rest(), Err("`--sed` is not known here".to_owned()));
    }
}
