//! Paths served by another service.

use axum::Router;
use axum::routing::MethodRouter;

/// Routes without any method. If services run as separate processes, a request is routed to its
/// process by its method; one that reaches the wrong process has the wrong method, not the wrong
/// path, as it would with all services in one process.
///
/// Paths for keys also exist under `/dashboard` for an organization's pages.
pub fn answered_elsewhere(paths: &[&str]) -> Router {
    let on_pages = paths.iter().filter(|path| path.starts_with("/api/"));
    let on_pages = on_pages.map(|path| format!("/dashboard{path}"));
    let paths = paths.iter().map(|&path| path.to_owned());
    paths.chain(on_pages).fold(Router::new(), |router, path| {
        router.route(&path, MethodRouter::new())
    })
}
