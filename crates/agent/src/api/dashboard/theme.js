// Runs before the page is drawn, so that it never flashes in the wrong colours.
(() => {
  let wish = 'system';
  try {
    wish = localStorage.getItem('bellwether-theme') ?? 'system';
  } catch {
    // Storage may be forbidden; then the system decides.
  }
  if (wish === 'light' || wish === 'dark') {
    document.documentElement.dataset.theme = wish;
  }
})();
