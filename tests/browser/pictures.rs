//! The documentation's pictures, taken of the demo: `make pictures`.

use std::path::{Path, PathBuf};

use serde_json::json;

use crate::demo::demo;
use crate::driver::{Page, Scheme, browse, tell};

/// The folder that pictures are written to; without it none is taken.
const VARIABLE: &str = "WAYPOST_PICTURES";
/// A larger picture would keep readers waiting.
const MOST_BYTES: usize = 120_000;

/// Saves screenshots of the window under this name, for light pages and for dark ones.
async fn take(page: &Page, folder: &Path, name: &str) {
    for (scheme, file) in [
        (Scheme::Dark, format!("{name}-dark.png")),
        (Scheme::Light, format!("{name}.png")),
    ] {
        page.prefers(scheme).await;
        let picture = page.picture(json!({"format": "png"})).await;
        tell(&format!("{file}: {} KB", picture.len() / 1000));
        assert!(
            picture.len() < MOST_BYTES,
            "{file}: {} bytes",
            picture.len()
        );
        std::fs::write(folder.join(file), picture).unwrap();
    }
}

#[tokio::test]
async fn pictures_are_taken_where_they_are_asked_for() {
    let Some(folder) = std::env::var_os(VARIABLE).map(PathBuf::from) else {
        return;
    };
    browse(async |browser| {
        let demo = demo().await;
        let page = browser.page().await;
        page.is_of(&demo.owner).await;
        page.has_size(1280, 720).await;
        for (name, path) in [
            ("home", "/dashboard".to_owned()),
            ("workflow", format!("/dashboard/runs/{}", demo.runs[2])),
            ("runs", "/dashboard/runs".to_owned()),
        ] {
            page.wait(name, async || {
                page.go(&path).await;
                let is_behind = page.text().await.contains("still being read in");
                (!is_behind).then_some(())
            })
            .await;
            if name == "workflow" {
                page.sees("Live: ").await;
            }
            take(&page, &folder, name).await;
        }
        let app = browser.page().await;
        app.has_size(360, 740).await;
        app.go("/app").await;
        let (email, password) = &demo.family[0];
        app.field("E-mail address").write(email).await;
        app.field("Password").write(password).await;
        app.button("Sign in").click().await;
        app.at("#app-people li").is_there().await;
        app.sees("Live.").await;
        take(&app, &folder, "app").await;
        app.has_size(1280, 720).await;
        app.at("#app-map").click().await;
        take(&app, &folder, "map").await;
    })
    .await;
}
