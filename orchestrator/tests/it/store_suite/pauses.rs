//! Stopping a provider's creates, on record.

use super::fixture::{Fixture, PSP, intent_id};

async fn pauses(fixture: &Fixture) -> Vec<(String, String, String)> {
    let pauses = fixture.store.psp_pauses().await.unwrap();
    pauses.into_iter().map(|pause| (pause.psp, pause.actor, pause.reason)).collect()
}

fn entry(psp: &str, actor: &str, reason: &str) -> (String, String, String) {
    (psp.to_owned(), actor.to_owned(), reason.to_owned())
}

pub(crate) async fn a_pause_is_shown_until_resumed(fixture: &Fixture) {
    fixture.intent("r-1").await;
    assert!(pauses(fixture).await.is_empty());
    fixture.store.pause_psp("other", "bob", "maintenance").await.unwrap();
    fixture.store.pause_psp(PSP, "ann", "answers with 500").await.unwrap();
    let mut shown = pauses(fixture).await;
    shown.sort();
    assert_eq!(shown, [entry(PSP, "ann", "answers with 500"), entry("other", "bob", "maintenance")]);
    let story = fixture.store.story(&intent_id("r-1")).await.unwrap().unwrap();
    assert_eq!(story.psp_pause.unwrap().actor, "ann");
    assert!(fixture.store.resume_psp(PSP, "ann", "healthy again").await.unwrap());
    assert_eq!(pauses(fixture).await, [entry("other", "bob", "maintenance")]);
    assert!(!fixture.store.resume_psp(PSP, "ann", "healthy again").await.unwrap());
    let story = fixture.store.story(&intent_id("r-1")).await.unwrap().unwrap();
    assert_eq!(story.psp_pause, None);
}

pub(crate) async fn pausing_again_replaces_the_reason(fixture: &Fixture) {
    fixture.store.pause_psp(PSP, "ann", "answers with 500").await.unwrap();
    fixture.store.pause_psp(PSP, "bob", "still does").await.unwrap();
    assert_eq!(pauses(fixture).await, [entry(PSP, "bob", "still does")]);
    assert!(fixture.store.resume_psp(PSP, "bob", "healthy again").await.unwrap());
    assert!(pauses(fixture).await.is_empty());
}
