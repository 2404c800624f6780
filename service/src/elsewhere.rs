//! Paths that another service answers.

use axum::Router;
use axum::routing::MethodRouter;

/// Routes that take no method at all. Where services run as processes of their own, a request
/// finds its process by its method; one that comes to the wrong process has the method wrong and
/// not the path, as it would with all services in one process.
pub fn answered_elsewhere(paths: &[&str]) -> Router {
    paths.iter().fold(Router::new(), |router, path| {
        router.route(path, MethodRouter::new())
    })
}
