//! How well and how fast the search is, beside SQLite's FTS5 in the same run.
//!
//! * [`collection`]: a folder with documents, queries and judgements, as at TREC; [`metrics`]: what an answer is worth;
//! * [`engine`]: the search of the host, and [`fts5`] two ways: each is given the same and asked the same;
//! * [`quality`]: what each finds;
//! * [`generate`]: as many assistants as one wants, over the words of [`words`]; [`asks`]: what they are asked for;
//! * [`speed`]: how fast and how large the index is over them, and a [`host`] over as many files;
//! * [`cpu`]: the time that a thread has worked; [`arguments`]: what the program is told.

pub mod arguments;
pub mod asks;
pub mod collection;
pub mod cpu;
pub mod engine;
pub mod fts5;
pub mod generate;
pub mod host;
pub mod metrics;
pub mod quality;
pub mod speed;
pub mod words;
