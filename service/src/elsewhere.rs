//! Paths that another service answers.

use axum::Router;
use axum::routing::MethodRouter;

/// Routes that take no method at all. Where services run as processes of their own, a request
/// finds its process by its method; one that comes to the wrong process has the method wrong and
/// not the path, as it would with all services in one process.
///
/// What is there for keys is there under `/dashboard` for an organization's pages, too.
pub fn answered_elsewhere(paths: &[&str]) -> Router {
    let on_pages = paths.iter().filter(|path| path.starts_with("/api/"));
    let on_pages = on_pages.map(|path| format!("/dashboard{path}"));
    let paths = paths.iter().map(|&path| path.to_owned());
    paths.chain(on_pages).fold(Router::new(), |router, path| {
        router.route(&path, MethodRouter::new())
    })
}
