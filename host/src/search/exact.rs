//! Finds assistants whose id or name is the whole query, however it is written.

use std::collections::HashMap;
use std::sync::Arc;

use super::analyzer::{plain_words, split_camel};
use super::query;
use crate::registry::{Definition, slug};

/// Bytes of a name that is compared word by word; one of its words could be left out else.
const WORDS_BYTES_MAX: usize = 64;

/// Places of assistants, by what their id and name may be written as.
pub(super) struct Exact(HashMap<String, Vec<usize>>);

impl Exact {
    pub(super) fn new(assistants: &[Arc<Definition>]) -> Self {
        let mut exact: HashMap<String, Vec<usize>> = HashMap::new();
        for (place, found) in assistants.iter().enumerate() {
            let split = split_camel(&found.name);
            let texts = [Some(found.id.as_str()), Some(found.name.as_str()), split.as_deref()];
            for key in texts.into_iter().flatten().flat_map(keys) {
                let places = exact.entry(key).or_default();
                if places.last() != Some(&place) {
                    places.push(place);
                }
            }
        }
        Self(exact)
    }

    /// The places of those that `text` names, in order.
    pub(super) fn find(&self, text: &str) -> Vec<usize> {
        let mut places: Vec<usize> =
            keys(query::start(text)).filter_map(|key| self.0.get(&key)).flatten().copied().collect();
        places.sort_unstable();
        places.dedup();
        places
    }
}

/// The slug, as ids are made, and the plain words, which know accents and `.NET`.
fn keys(text: &str) -> impl Iterator<Item = String> {
    let words = (text.len() <= WORDS_BYTES_MAX).then(|| plain_words(text)).filter(|words| !words.is_empty());
    slug(text).into_iter().chain(words)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::{Source, read_markdown};

    #[test]
    fn names() {
        let named = |name: &str| {
            let text = format!("---\nname: '{name}'\ndescription: Works\n---\n");
            let read = read_markdown(text.as_bytes(), std::path::Path::new("x.md"), Source::Project);
            Arc::new(read.expect("a definition"))
        };
        let check = |name: &str, query: &str, found: bool| {
            assert_eq!(Exact::new(&[named(name)]).find(query), if found { vec![0] } else { vec![] }, "{name} {query}");
        };
        for query in ["code-reviewer", "Code Reviewer", " CODE_reviewer\n", "code.reviewer", "\"Code reviewer\""] {
            check("code-reviewer", query, true);
        }
        for query in ["code", "code-reviewer please", "codereviewer", "code-reviewers", ""] {
            check("code-reviewer", query, false);
        }
        check("cpp-pro", "c++ pro", true);
        check("C++ Pro", "cpp-pro", true);
        check("C++ Pro", "c pro", false);
        check("dotnet-expert", ".NET Expert", true);
        check("csharp-dotnet", "C#/.NET", true);
        check("VerifactuExpert", "verifactu expert", true);
        check("VerifactuExpert", "verifactuexpert", true);
        check("Résumé Writer", "resume writer", true);
        check("发票核对", "发票核对", true);
        check("发票核对", "发票", false);
        check("the-doer", "The Doer", true);
        check("the-doer", "doer", false);
        check(&format!("x {}", "y".repeat(70)), "x", false);
        assert_eq!(Exact::new(&[named("a b"), named("a-b"), named("A B")]).find("a b"), [0, 1, 2]);
    }
}
