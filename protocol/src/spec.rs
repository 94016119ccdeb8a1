//! The protocol as a document: what a runner must, should and may do, by the names that the conformance kit uses too.
//!
//! In reading order: [`rules`].

pub mod rules;
