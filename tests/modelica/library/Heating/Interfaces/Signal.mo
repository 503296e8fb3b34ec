within Heating.Interfaces;
connector Signal = Real;
