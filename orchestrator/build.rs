//! New migration files must reach the binary: `sqlx::migrate!` alone does not notice them.
fn main() {
    println!("cargo:rerun-if-changed=../migrations");
}
