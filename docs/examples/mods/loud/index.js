// Shows the chat in capitals. `!loud` in the game switches it off and on.
exports.NetworkMod = class Loud {
  constructor(mod) {
    mod.command.add('loud', () => {
      mod.settings.isOn = !mod.settings.isOn;
      mod.command.message(mod.settings.isOn ? 'on' : 'off');
    });
    // Runs after the chat has been logged.
    mod.hook('S_CHAT', '*', { order: 10 }, event => {
      if (!mod.settings.isOn) return;
      event.message = event.message.toUpperCase();
      return true;
    });
  }
};
