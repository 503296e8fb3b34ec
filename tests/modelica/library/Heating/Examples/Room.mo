within Heating.Examples;
model Room "A room behind a wall, with a boiler"
  Components.Capacity air(C = 5e5);
  Components.Layers wall(data = Records.Brick());
  Components.Resistance window(R = 0.02);
  Components.Boiler boiler;
  Sources.Weather weather;
  Sources.Gain gain;
equation
  connect(air.port, wall.inside);
  connect(wall.outside, weather.port);
  connect(air.port, window.a);
  connect(window.b, weather.port);
  connect(boiler.port, air.port);
  connect(gain.port, air.port);
  connect(boiler.outdoor, weather.T);
end Room;
