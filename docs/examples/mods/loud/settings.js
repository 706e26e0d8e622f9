// The settings if there are none yet, or if they are of another version.
module.exports = () => ({ isOn: true });
