// Writes the chat to the proxy's log.
module.exports = function ChatLog(mod) {
  mod.hook('S_CHAT', '*', event => {
    mod.log(`${event.authorName ?? event.name}: ${event.message}`);
  });
};
