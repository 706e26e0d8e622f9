// The settings to use if there are none yet or if their version differs.
module.exports = () => ({ isOn: true });
