//! Finds assistants whose id or name is the whole query, however it is written.

use std::sync::Arc;

use super::analyzer::{plain_words, split_camel};
use super::query;
use crate::registry::{Definition, Lookup, slug};

/// Bytes of a name that is compared word by word; one of its words could be left out else.
const WORDS_BYTES_MAX: usize = 64;

/// Places of assistants, by what their id and name may be written as.
pub(super) struct Exact(Lookup);

impl Exact {
    /// Of these `assistants`. Those that `before` has too, at the place that is told for theirs, are not looked at again.
    pub(super) fn new(assistants: &[Arc<Definition>], before: Option<(&Self, &[Option<usize>])>) -> Self {
        let mut known = vec![false; assistants.len()];
        let mut lookup = Lookup::default();
        if let Some((Self(before), moves)) = before {
            moves.iter().flatten().for_each(|place| known[*place] = true);
            lookup = before.moved(moves);
        }
        let new = (0..).zip(assistants).zip(known).filter(|(_, known)| !known);
        Self(lookup.with(new.flat_map(|((place, found), _)| own_keys(found).into_iter().map(move |key| (key, place)))))
    }

    /// The places among `assistants`, of which it is, of those that `text` names, in order.
    pub(super) fn find(&self, assistants: &[Arc<Definition>], text: &str) -> Vec<usize> {
        let mut found = Vec::new();
        for key in keys(query::start(text)) {
            found.extend(self.0.all(&key).filter(|place| own_keys(&assistants[*place]).contains(&key)));
        }
        found.sort_unstable();
        found.dedup();
        found
    }
}

/// What an assistant may be written as.
fn own_keys(found: &Definition) -> Vec<String> {
    let split = split_camel(&found.name);
    let texts = [Some(found.id.as_str()), Some(found.name.as_str()), split.as_deref()];
    texts.into_iter().flatten().flat_map(keys).collect()
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
            let all = [named(name)];
            assert_eq!(
                Exact::new(&all, None).find(&all, query),
                if found { vec![0] } else { vec![] },
                "{name} {query}"
            );
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
        let all = [named("a b"), named("a-b"), named("A B")];
        let exact = Exact::new(&all, None);
        assert_eq!(exact.find(&all, "a b"), [0, 1, 2]);
        let next = [named("c"), all[2].clone(), all[0].clone()];
        let exact = Exact::new(&next, Some((&exact, &[Some(2), None, Some(1)])));
        assert_eq!((exact.find(&next, "a b"), exact.find(&next, "C")), (vec![1, 2], vec![0]));
    }
}
