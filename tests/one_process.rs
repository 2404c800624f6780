//! Everything that can be seen from outside, against all services in one process.
use harness::{Shape, System};

mod outside;

/// The system under test.
async fn system() -> &'static System {
    System::shared(Shape::One).await
}
