//! What the comparison command and the bench of libraries share: values in few numbers.

mod summary;

pub use summary::Summary;
