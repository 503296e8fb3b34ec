within Heating.Interfaces;
partial model OnePort
  Port port;
end OnePort;
