//! The protocol as a document: what `protocol/README.md` and `schema/runner-protocol.openrpc.json` are made of.
//!
//! The methods stand in [`crate::methods`] with when they may be asked and how they may fail, the errors in
//! [`crate::error`]. In reading order:
//!
//! * [`rules`]: what a runner must, should and may do, by the names that the conformance kit uses too;
//! * [`order`]: the stages of a connection; [`bounds`]: every bound with its unit;
//! * [`examples`]: lines each way for each method;
//! * [`openrpc`]: all of it as an OpenRPC document; [`shapes`]: its types in short; [`page`]: parts of the page.

pub mod rules;

pub mod order;

pub mod bounds;

pub mod examples;

pub mod openrpc;

pub mod shapes;

pub mod page;
