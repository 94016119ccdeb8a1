//! Assistant Host.
pub mod limits;
pub mod model;
