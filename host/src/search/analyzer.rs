//! From text to terms, the same for the index and for queries.
//!
//! Words are split at everything that is no letter or digit, but `C++`, `C#`, `F#` and `.NET` stay what they are (as
//! `cpp`, `csharp`, `fsharp`, `dotnet`, which is how file names write them). Then lower case, ASCII folding, stop words
//! and the English stemmer. Text without blanks between words (Chinese, Japanese, Korean, Thai, Lao, Burmese, Khmer)
//! becomes pairs of neighbours. Signs that nobody sees, as soft hyphens, are no part of a word and part none.

use tantivy::tokenizer::{
    AsciiFoldingFilter, Language, Stemmer, StopWordFilter, TextAnalyzer, Token, TokenStream, Tokenizer,
};

/// Bumped when the same text gives other terms; an index of another version is built anew.
pub(super) const ANALYZER_VERSION: u32 = 4;
/// Bytes of the longest word that is a term; longer ones are data, not language.
const WORD_BYTES_MAX: usize = 64;

/// Words that say nothing about a task.
const STOP_WORDS: &[&str] = &[
    "a", "about", "after", "all", "also", "am", "an", "and", "any", "are", "as", "at", "be", "because", "been",
    "before", "being", "but", "by", "can", "could", "did", "do", "does", "doing", "don", "for", "from", "get", "had",
    "has", "have", "having", "he", "her", "here", "him", "his", "how", "i", "if", "in", "into", "is", "it", "its",
    "just", "ll", "m", "me", "more", "most", "my", "need", "no", "not", "of", "on", "once", "only", "or", "other",
    "our", "out", "over", "own", "please", "re", "s", "same", "she", "should", "so", "some", "such", "t", "than",
    "that", "the", "their", "them", "then", "there", "these", "they", "this", "those", "to", "too", "us", "ve", "very",
    "want", "was", "we", "were", "what", "when", "where", "which", "while", "who", "whom", "why", "will", "with",
    "would", "you", "your",
];

/// The whole pipeline.
pub(super) fn analyzer() -> TextAnalyzer {
    TextAnalyzer::builder(Words::default())
        .filter(AsciiFoldingFilter)
        .filter(StopWordFilter::remove(STOP_WORDS.iter().map(|word| (*word).to_owned())))
        .filter(Stemmer::new(Language::English))
        .build()
}

/// The words of `text` with blanks between, neither stemmed nor any left out.
pub(super) fn plain_words(text: &str) -> String {
    let mut words = TextAnalyzer::builder(Words::default()).filter(AsciiFoldingFilter).build();
    let mut stream = words.token_stream(text);
    let mut plain = String::with_capacity(text.len());
    while let Some(token) = stream.next() {
        plain.extend([if plain.is_empty() { "" } else { " " }, &token.text]);
    }
    plain
}

/// `name` with blanks between the words of `camelCase` and `HTTPServer`, where there are any. `APIs` is one word.
pub(super) fn split_camel(name: &str) -> Option<String> {
    let mut split = String::with_capacity(name.len() + 4);
    let mut before = ' ';
    for (at, c) in name.char_indices() {
        let begins_word = || name[at..].chars().skip(1).take(2).filter(|c| c.is_lowercase()).count() == 2;
        if c.is_uppercase() && (before.is_lowercase() || before.is_uppercase() && begins_word()) {
            split.push(' ');
        }
        split.push(c);
        before = c;
    }
    (split.len() > name.len()).then_some(split)
}

/// Splits a text into lower-case words.
#[derive(Clone, Default)]
struct Words {
    token: Token,
}

/// The words of one text.
struct WordStream<'a> {
    text: &'a str,
    at: usize,
    /// The character before `at` was already taken into a pair.
    paired: bool,
    token: &'a mut Token,
}

impl Tokenizer for Words {
    type TokenStream<'a> = WordStream<'a>;

    fn token_stream<'a>(&'a mut self, text: &'a str) -> WordStream<'a> {
        self.token.reset();
        WordStream { text, at: 0, paired: false, token: &mut self.token }
    }
}

impl TokenStream for WordStream<'_> {
    fn advance(&mut self) -> bool {
        while let Some(c) = self.text[self.at..].chars().next() {
            self.token.text.clear();
            self.token.offset_from = self.at;
            let mut end = None;
            if is_unspaced(c) {
                end = self.pair(c);
            } else if c.is_alphanumeric() {
                self.word();
            } else if c == '.' && self.dotnet() {
                self.at += ".net".len();
                self.token.text.push_str("dotnet");
            } else {
                self.at += c.len_utf8();
            }
            self.paired = is_unspaced(c);
            self.token.offset_to = end.unwrap_or(self.at);
            if !self.token.text.is_empty() && self.token.text.len() <= WORD_BYTES_MAX {
                self.token.position = self.token.position.wrapping_add(1);
                return true;
            }
        }
        false
    }

    fn token(&self) -> &Token {
        self.token
    }

    fn token_mut(&mut self) -> &mut Token {
        self.token
    }
}

impl WordStream<'_> {
    /// `c` and its right neighbour, whose end is returned; alone only if it has no neighbour on either side.
    fn pair(&mut self, c: char) -> Option<usize> {
        self.at += c.len_utf8();
        self.at = self.text.len() - self.text[self.at..].trim_start_matches(is_mark).len();
        let next = self.text[self.at..].chars().next().filter(|next| is_unspaced(*next));
        match next {
            Some(next) => self.token.text.extend([c, next]),
            None if !self.paired => self.token.text.push(c),
            None => {}
        }
        next.map(|next| self.at + next.len_utf8())
    }

    fn word(&mut self) {
        let rest = &self.text[self.at..];
        let end = rest.find(|c: char| is_unspaced(c) || !(c.is_alphanumeric() || is_mark(c))).unwrap_or(rest.len());
        let (word, after) = rest.split_at(end);
        let (name, sign) = match word {
            "c" | "C" if after.starts_with("++") => ("cpp", 2),
            "c" | "C" if after.starts_with('#') => ("csharp", 1),
            "f" | "F" if after.starts_with('#') => ("fsharp", 1),
            _ => ("", 0),
        };
        self.at += end + sign;
        if name.is_empty() {
            self.token.text.extend(word.chars().flat_map(char::to_lowercase).filter(|c| !is_mark(*c)));
        } else {
            self.token.text.push_str(name);
        }
    }

    /// Whether `.NET` begins here; within a word (`ASP.NET`) only in capitals, so that a domain's end is none.
    fn dotnet(&self) -> bool {
        let inside = self.text[..self.at].ends_with(char::is_alphanumeric);
        let rest = &self.text[self.at + 1..];
        let net = rest.get(..3).is_some_and(|net| net == "NET" || (!inside && net.eq_ignore_ascii_case("net")));
        net && !rest[3..].starts_with(char::is_alphanumeric)
    }
}

/// A letter of a script that puts no blanks between words, or a sign above or below one.
fn is_unspaced(c: char) -> bool {
    let thai_or_lao = matches!(c, '\u{e01}'..='\u{e3a}' | '\u{e40}'..='\u{e4e}' | '\u{e81}'..='\u{ece}'
        | '\u{edc}'..='\u{edf}');
    let burmese = matches!(c, '\u{1000}'..='\u{103f}' | '\u{1050}'..='\u{108f}' | '\u{109a}'..='\u{109d}'
        | '\u{a9e0}'..='\u{a9ef}' | '\u{a9fa}'..='\u{a9fe}' | '\u{aa60}'..='\u{aa7f}');
    let khmer = matches!(c, '\u{1780}'..='\u{17d3}' | '\u{17d7}' | '\u{17dc}' | '\u{17dd}');
    if thai_or_lao || burmese || khmer {
        return true;
    }
    matches!(c, '\u{3005}'..='\u{3007}' | '\u{3040}'..='\u{30ff}' | '\u{3105}'..='\u{312f}'
        | '\u{31a0}'..='\u{31bf}' | '\u{31f0}'..='\u{31ff}' | '\u{ff66}'..='\u{ff9f}' | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{ac00}'..='\u{d7af}'
        | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{323af}')
        && c.is_alphanumeric()
}

/// What belongs to the letter before it and is left out: a combining accent, or a sign that nobody sees (a soft hyphen, a
/// joiner, a mark of direction, a variant of a letter).
fn is_mark(c: char) -> bool {
    matches!(c, '\u{300}'..='\u{36f}' | '\u{ad}' | '\u{61c}' | '\u{200c}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
        | '\u{2060}'..='\u{2064}' | '\u{2066}'..='\u{2069}' | '\u{3099}' | '\u{309a}' | '\u{fe00}'..='\u{fe0f}'
        | '\u{feff}' | '\u{e0100}'..='\u{e01ef}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terms() {
        let check = |text: &str, expected: &str| {
            let mut analyzer = analyzer();
            let mut stream = analyzer.token_stream(text);
            let mut found = Vec::new();
            while let Some(token) = stream.next() {
                found.push(format!("{}={}", token.text, &text[token.offset_from..token.offset_to]));
            }
            assert_eq!(found.join(" "), expected, "{text:?}");
        };
        check("", "");
        check("Reviews Code-quality", "review=Reviews code=Code qualiti=quality");
        check("C++ and C# or F#, c", "cpp=C++ csharp=C# fsharp=F# c=c");
        check("cpp csharp", "cpp=cpp csharp=csharp");
        check(
            ".NET ASP.NET example.net .network",
            "dotnet=.NET asp=ASP dotnet=.NET exampl=example net=net network=network",
        );
        check("résumé re\u{301}sume\u{301} RESUME", "resum=résumé resum=re\u{301}sume\u{301} resum=RESUME");
        check("发票核对 a 票", "发票=发票 票核=票核 核对=核对 票=票");
        check("用Python写", "用=用 python=Python 写=写");
        check("데이터", "데이=데이 이터=이터");
        check("We're \"done\": *x* -y 🧾 key:value", "done=done x=x y=y key=key valu=value");
        check(&"a".repeat(65), "");
        check(
            "ku\u{ad}ber\u{200d}netes \u{feff}pod\u{200f} a\u{200b}b",
            "kubernet=ku\u{ad}ber\u{200d}netes pod=pod\u{200f} b=b",
        );
        check("แปลงาน", "แป=แป ปล=ปล ลง=ลง งา=งา าน=าน");
        check("မြန်", "မြ=မြ ြန=ြန န်=န်");
        check("ຫນັງສືໜັງສື", "ຫນ=ຫນ ນັ=ນັ ັງ=ັງ ງສ=ງສ ສື=ສື ືໜ=ືໜ ໜັ=ໜັ ັງ=ັງ ງສ=ງສ ສື=ສື");
        check("ផ្សេងៗ", "ផ្=ផ្ ្ស=្ស សេ=សេ េង=េង ងៗ=ងៗ");
        check("ၵႃး", "ၵႃ=ၵႃ ႃး=ႃး");
        check("人々", "人々=人々");
        check("ﾃﾞｰﾀ", "ﾃﾞ=ﾃﾞ ﾞｰ=ﾞｰ ｰﾀ=ｰﾀ");
        // Signs that nobody sees part no text without blanks, wherever they stand.
        check("发\u{200d}票", "发票=发\u{200d}票");
        check("发\u{ad}\u{feff}票\u{2060}核", "发票=发\u{ad}\u{feff}票 票核=票\u{2060}核");
        check("\u{200d}票\u{200d} 票", "票=票\u{200d} 票=票");
        check("葛\u{e0100}飾", "葛飾=葛\u{e0100}飾");
        check("แ\u{200d}ป", "แป=แ\u{200d}ป");
        check("か\u{3099}き", "かき=か\u{3099}き");
        check("用\u{200d}Python", "用=用\u{200d} python=Python");
        check("Python\u{200d}用", "python=Python\u{200d} 用=用");
        check("snake_case k8s", "snake=snake case=case k8s=k8s");
        check("the of and", "");
    }

    #[test]
    fn camel_case() {
        assert_eq!(split_camel("VerifactuExpert").as_deref(), Some("Verifactu Expert"));
        assert_eq!(split_camel("code-reviewer"), None);
        assert_eq!(split_camel("API"), None);
        assert_eq!(split_camel("APIs"), None);
        assert_eq!(split_camel("HTTPServerTester").as_deref(), Some("HTTP Server Tester"));
    }
}
